export type * from "./generated/types.ts";
export { type KindRow, kindTable } from "./kind-table.ts";
export { type BuiltInResources, resources } from "./resources.ts";
export { createScheme, type MutableScheme, schemaNameOf } from "./create-scheme.ts";
export { column, defaultColumns } from "./columns/column.ts";
export { humanDuration } from "./columns/human-duration.ts";
export { checkFields, type FieldCheck, strictErrorMessage, typeErrorMessage } from "./schema/check-fields.ts";
export { normalizeObject } from "./schema/normalize.ts";
export { describeSchema, fieldAt, type Schema, type SchemaField, schemaNames, schemaOf } from "./schema/schema.ts";
export { canonicalMicroTime, canonicalTime } from "./schema/time.ts";
export { fieldError } from "./validation/field-error.ts";
export { validateLabelSelector } from "./validation/label-selector.ts";
export {
  isConfigMapKey,
  isDNS1035Label,
  isDNS1123Label,
  isDNS1123Subdomain,
  isLabelValue,
  isQualifiedName,
  type NameCheck,
  nameIsDNSLabel,
  nameIsDNSSubdomain,
  nameIsPathSegment,
} from "./validation/names.ts";
export {
  validateFieldManager,
  validateLabels,
  validateObjectMeta,
  validateObjectMetaUpdate,
} from "./validation/object-meta.ts";
export { type PodSummary, summarizePod } from "./core/pod/columns.ts";
export { isSidecar, podLimits, podRequests, type QOSClass, qosClass, type ResourceList } from "./core/pod/resources.ts";
export {
  isPodActive,
  isPodAvailable,
  isPodReady,
  isPodTerminal,
  isTerminating,
  podCondition,
} from "./core/pod/state.ts";
export { controllerOf, controllerReference, isControlledBy } from "./owner-references.ts";
export type { Column, KindInfo, Scheme, Strategy, SubresourceInfo } from "./scheme.ts";
export { type ApiObject, apiVersionOf, type ObjectMetaLike, type OwnerReferenceLike, type Resource } from "./object.ts";
export type { AttachOptions, ExecOptions, ExecSession, LogOptions, NodeConnector, PodRef, Session } from "./session.ts";
export {
  alreadyExists,
  badRequest,
  conflict,
  failure,
  type FieldError,
  forbidden,
  gone,
  internalError,
  invalid,
  isStatus,
  methodNotSupported,
  modified,
  notFound,
  type Status,
  type StatusCause,
  type StatusDetails,
  StatusError,
  unauthorized,
} from "./status-error.ts";
export type { ApiBody, ApiRequest, ApiResponse, UserInfo, WatchEvent, WatchSink, WatchStream } from "./wire.ts";
export {
  addQuantity,
  canonicalQuantity,
  compareQuantity,
  formatQuantity,
  type ParsedQuantity,
  parseQuantity,
  quantityError,
  quantityMilliValue,
  type QuantityFormat,
  quantityValue,
  subtractQuantity,
} from "./quantity.ts";
export { formatSelector, isEmptySelector, matchesLabels, matchesSelector } from "./selector.ts";
export {
  matchesNodeAffinity,
  matchesNodeSelector,
  matchesTerm,
  tolerates,
  untoleratedTaint,
} from "./node-selector.ts";
export { findMatchingVolume, satisfiesClaim } from "./volume-match.ts";
export { addUsage, countName, quotaCounts, quotaMatches, quotaUsage, type Usage } from "./quota-usage.ts";
export { validateClusterIPs } from "./core/service/validate-addresses.ts";

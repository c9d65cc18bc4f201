export type * from "./generated/types.ts";
export { type KindRow, kindTable } from "./kind-table.ts";
export { type BuiltInResources, resources } from "./resources.ts";
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
  compareQuantity,
  formatQuantity,
  type ParsedQuantity,
  parseQuantity,
  quantityMilliValue,
  type QuantityFormat,
  quantityValue,
} from "./quantity.ts";
export { formatSelector, isEmptySelector, matchesLabels, matchesSelector } from "./selector.ts";

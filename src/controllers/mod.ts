export { type Controllers, type ControllersOptions, controllerNames, startControllers } from "./manager.ts";
export {
  type Controller,
  type ControllerDeps,
  type ControllerMetrics,
  type ControllerSpec,
  createController,
  type ReconcileResult,
  type Sources,
} from "./runtime/controller.ts";
export type { CertificateSigner, RequestedCertificate } from "./certificates/signer.ts";
export type { LocalPathOptions } from "./volume/local-path.ts";

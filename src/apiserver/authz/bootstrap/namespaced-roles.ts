import { allow, type RoleTable } from "./rule.ts";

/** Roles by `<namespace>/<name>`. */
export const NAMESPACED_ROLES: RoleTable = {
  "kube-public/system:controller:bootstrap-signer": [
    allow("core", "configmaps", "get list watch"),
    allow("core", "configmaps", "update", "cluster-info"),
    allow("core events.k8s.io", "events", "create patch update"),
  ],
  "kube-system/extension-apiserver-authentication-reader": [
    allow("core", "configmaps", "get list watch", "extension-apiserver-authentication"),
  ],
  "kube-system/system::leader-locking-kube-controller-manager": [
    allow("coordination.k8s.io", "leases", "create get list update watch"),
    allow("coordination.k8s.io", "leasecandidates", "create get list update watch"),
  ],
  "kube-system/system::leader-locking-kube-scheduler": [
    allow("coordination.k8s.io", "leases", "create get list update watch"),
    allow("coordination.k8s.io", "leasecandidates", "create get list update watch"),
  ],
  "kube-system/system:controller:bootstrap-signer": [allow("core", "secrets", "get list watch")],
  "kube-system/system:controller:cloud-provider": [allow("core", "configmaps", "create get list watch")],
  "kube-system/system:controller:token-cleaner": [
    allow("core", "secrets", "delete get list watch"),
    allow("core events.k8s.io", "events", "create patch update"),
  ],
};

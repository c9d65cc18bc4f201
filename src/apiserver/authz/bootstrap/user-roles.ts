import { allow, paths, type RoleTable } from "./rule.ts";

/** ClusterRoles for people, and what every user may see. https://kubernetes.io/docs/reference/access-authn-authz/rbac/#user-facing-roles */
export const USER_ROLES: RoleTable = {
  "cluster-admin": [allow("*", "*", "*"), paths("*", "*")],
  "system:aggregate-to-admin": [
    allow("authorization.k8s.io", "localsubjectaccessreviews", "create"),
    allow(
      "rbac.authorization.k8s.io",
      "rolebindings roles",
      "create delete deletecollection get list patch update watch",
    ),
  ],
  "system:aggregate-to-edit": [
    allow("core", "pods/attach pods/exec pods/portforward pods/proxy secrets services/proxy", "get list watch"),
    allow("core", "serviceaccounts", "impersonate"),
    allow(
      "core",
      "pods pods/attach pods/exec pods/portforward pods/proxy",
      "create delete deletecollection patch update",
    ),
    allow("core", "pods/eviction", "create"),
    allow(
      "core",
      "configmaps persistentvolumeclaims replicationcontrollers replicationcontrollers/scale secrets serviceaccounts services services/proxy",
      "create delete deletecollection patch update",
    ),
    allow("core", "serviceaccounts/token", "create"),
    allow("core events.k8s.io", "events", "create delete deletecollection patch update"),
    allow(
      "apps",
      "daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale statefulsets statefulsets/scale",
      "create delete deletecollection patch update",
    ),
    allow("autoscaling", "horizontalpodautoscalers", "create delete deletecollection patch update"),
    allow("batch", "cronjobs jobs", "create delete deletecollection patch update"),
    allow(
      "extensions",
      "daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies replicasets replicasets/scale replicationcontrollers/scale",
      "create delete deletecollection patch update",
    ),
    allow("policy", "poddisruptionbudgets", "create delete deletecollection patch update"),
    allow("networking.k8s.io", "ingresses networkpolicies", "create delete deletecollection patch update"),
    allow("coordination.k8s.io", "leases", "create delete deletecollection get list patch update watch"),
    allow("resource.k8s.io", "resourceclaims resourceclaimtemplates", "create delete deletecollection patch update"),
  ],
  "system:aggregate-to-view": [
    allow(
      "core",
      "configmaps endpoints persistentvolumeclaims persistentvolumeclaims/status pods replicationcontrollers replicationcontrollers/scale serviceaccounts services services/status",
      "get list watch",
    ),
    allow(
      "core",
      "bindings limitranges namespaces/status pods/log pods/status replicationcontrollers/status resourcequotas resourcequotas/status",
      "get list watch",
    ),
    allow("core", "namespaces", "get list watch"),
    allow("core events.k8s.io", "events", "get list watch"),
    allow("discovery.k8s.io", "endpointslices", "get list watch"),
    allow(
      "apps",
      "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status",
      "get list watch",
    ),
    allow("autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status", "get list watch"),
    allow("batch", "cronjobs cronjobs/status jobs jobs/status", "get list watch"),
    allow(
      "extensions",
      "daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses ingresses/status networkpolicies replicasets replicasets/scale replicasets/status replicationcontrollers/scale",
      "get list watch",
    ),
    allow("policy", "poddisruptionbudgets poddisruptionbudgets/status", "get list watch"),
    allow("networking.k8s.io", "ingresses ingresses/status networkpolicies", "get list watch"),
    allow("resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates", "get list watch"),
  ],
  "system:basic-user": [
    allow("authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews", "create"),
    allow("authentication.k8s.io", "selfsubjectreviews", "create"),
  ],
  "system:discovery": [
    paths("/api /api/* /apis /apis/* /healthz /livez /openapi /openapi/* /readyz /version /version/", "get"),
  ],
  "system:monitoring": [
    paths("/flagz /healthz /healthz/* /livez /livez/* /metrics /metrics/slis /readyz /readyz/* /statusz", "get"),
    allow("core", "nodes/metrics", "get"),
  ],
  "system:public-info-viewer": [paths("/healthz /livez /readyz /version /version/", "get")],
  "system:service-account-issuer-discovery": [
    paths(
      "/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/",
      "get",
    ),
  ],
};

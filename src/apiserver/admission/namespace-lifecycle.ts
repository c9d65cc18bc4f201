import { forbidden, notFound, resources } from "#kinds";
import type { AdmissionPlugin, Reader } from "../ports.ts";
import { refuse } from "./support.ts";

const IMMORTAL = new Set(["default", "kube-system", "kube-public"]);

/**
 * Nothing is created in a namespace that is absent or terminating, and the system's namespaces stay.
 * @see https://kubernetes.io/docs/reference/access-authn-authz/admission-controllers/#namespacelifecycle
 */
export function createNamespaceLifecycle({ reader }: { reader: Reader }): AdmissionPlugin {
  return {
    name: "NamespaceLifecycle",
    handles: ({ operation }) => operation !== "CONNECT",
    admit(attributes) {
      const { operation, kind, namespace, name } = attributes;
      const about = kind.group === "" && kind.resource === "namespaces";
      if (about && operation === "DELETE" && IMMORTAL.has(name)) {
        throw forbidden(kind, name, "this namespace may not be deleted");
      }
      if (about || !namespace || operation === "DELETE" || kind.resource === "localsubjectaccessreviews") return;
      const found = reader.get(resources.namespaces, undefined, namespace);
      if (!found) throw notFound({ group: "", resource: "namespaces" }, namespace);
      if (operation !== "CREATE" || found.status?.phase !== "Terminating") return;
      const error = refuse(
        attributes,
        `unable to create new content in namespace ${namespace} because it is being terminated`,
      );
      error.status.details = {
        ...error.status.details,
        causes: [
          {
            reason: "NamespaceTerminating",
            message: `namespace ${namespace} is being terminated`,
            field: "metadata.namespace",
          },
        ],
      };
      throw error;
    },
  };
}

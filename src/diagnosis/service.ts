import { isPodReady, matchesLabels } from "#kinds";
import { aboutOf, type Cause, type Evidence, relatedOf } from "./evidence.ts";
import { causesOfPods } from "./workload.ts";

interface Service {
  readonly spec?: {
    readonly selector?: Readonly<Record<string, string>>;
    readonly type?: string;
    readonly ports?: readonly {
      readonly port: number;
      readonly targetPort?: number | string;
      readonly name?: string;
    }[];
  };
}

/** Why nobody answers at a Service. */
export function serviceCauses(evidence: Evidence): Cause[] {
  const { object, pods } = evidence;
  const about = aboutOf(object);
  const { spec = {} } = object as unknown as Service;
  if (spec.type === "ExternalName") return [];
  const none = (sentence: string, shown: readonly string[], mends: Cause["mends"] = "maybe"): Cause => ({
    code: "no-endpoints",
    sentence,
    evidence: shown,
    about,
    mends,
  });
  const selector = spec.selector ?? {};
  if (Object.keys(selector).length === 0) {
    if (relatedOf(evidence, "EndpointSlice").length > 0) return [];
    return [
      none(`the Service "${about.name}" has no selector, and nobody has made an EndpointSlice for it`, [
        "spec.selector is empty",
      ]),
    ];
  }
  const text = Object.entries(selector)
    .map(([key, value]) => `${key}=${value}`)
    .join(",");
  const selected = pods.filter((pod) => matchesLabels(selector, pod.metadata.labels ?? {}));
  if (selected.length === 0)
    return [
      none(`no pod has the labels ${text} that the Service "${about.name}" selects`, [
        `spec.selector is ${text}`,
        ...nearMisses(evidence, selector),
      ]),
    ];
  const ready = selected.filter((pod) => isPodReady(pod as never));
  if (ready.length === 0) {
    const causes = causesOfPods({ ...evidence, pods: selected });
    const why = causes[0] ? `: ${causes[0].sentence}` : "";
    const sentence = `none of the ${selected.length} pods that the Service "${about.name}" selects is ready${why}`;
    return [
      none(sentence, [`spec.selector is ${text}`, ...(causes[0]?.evidence ?? [])], causes[0]?.mends ?? "maybe"),
      ...causes,
    ];
  }
  const portNames = new Set(
    selected.flatMap((pod) => pod.spec.containers.flatMap((c) => (c.ports ?? []).map((port) => port.name))),
  );
  const wrong = (spec.ports ?? []).find(
    ({ targetPort }) => typeof targetPort === "string" && !/^\d+$/.test(targetPort) && !portNames.has(targetPort),
  );
  if (wrong)
    return [
      none(
        `the Service "${about.name}" sends port ${wrong.port} to the port named "${wrong.targetPort}", which no container of its pods has`,
        [`spec.ports: targetPort is ${wrong.targetPort}`],
        "never",
      ),
    ];
  return [];
}

/** Pods that have one of the keys with another value: mostly a spelling mistake. */
function nearMisses(evidence: Evidence, selector: Readonly<Record<string, string>>): string[] {
  return evidence.pods
    .flatMap((pod) => {
      const labels = pod.metadata.labels ?? {};
      const near = Object.keys(selector).filter((key) => key in labels);
      return near.length > 0
        ? [`pod "${pod.metadata.name}" has ${near.map((key) => `${key}=${labels[key]}`).join(",")}`]
        : [];
    })
    .slice(0, 3);
}

/** An Ingress whose backends are not there. */
export function ingressCauses(evidence: Evidence): Cause[] {
  const about = aboutOf(evidence.object);
  const services = new Set(relatedOf(evidence, "Service").map((one) => one.metadata.name));
  const named = [...JSON.stringify(evidence.object.spec ?? {}).matchAll(/"service":\{"name":"([^"]+)"/g)].map(
    (match) => match[1]!,
  );
  const missing = named.find((name) => !services.has(name));
  if (!missing) return [];
  return [
    {
      code: "backend-missing",
      sentence: `the Ingress "${about.name}" sends to the Service "${missing}", which does not exist`,
      evidence: [`spec names the Service ${missing}`],
      about,
      mends: "maybe",
    },
  ];
}

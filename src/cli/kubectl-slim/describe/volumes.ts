import type { Volume } from "#kinds";
import type { DescribeWriter } from "./writer.ts";

/** The volumes of a pod, or of a template, which indents more. */
export function writeVolumes(writer: DescribeWriter, volumes: readonly Volume[], space: string): void {
  if (volumes.length === 0) {
    writer.add(`${space}Volumes:\t<none>\n`);
    return;
  }
  writer.add(`${space}Volumes:\n`);
  for (const volume of volumes) {
    writer.line(1, `${space ? " " : ""}${volume.name}:`);
    for (const line of volumeLines(volume)) writer.line(2, line);
  }
}

type Lines = readonly string[];

function volumeLines(volume: Volume): Lines {
  if (volume.hostPath)
    return type(
      "HostPath (bare host directory volume)",
      ["Path", volume.hostPath.path],
      ["HostPathType", volume.hostPath.type ?? ""],
    );
  if (volume.emptyDir)
    return type(
      "EmptyDir (a temporary directory that shares a pod's lifetime)",
      ["Medium", volume.emptyDir.medium ?? ""],
      ["SizeLimit", volume.emptyDir.sizeLimit ?? "<unset>"],
    );
  if (volume.secret)
    return type(
      "Secret (a volume populated by a Secret)",
      ["SecretName", volume.secret.secretName ?? ""],
      ["Optional", String(volume.secret.optional ?? false)],
    );
  if (volume.configMap)
    return type(
      "ConfigMap (a volume populated by a ConfigMap)",
      ["Name", volume.configMap.name ?? ""],
      ["Optional", String(volume.configMap.optional ?? false)],
    );
  if (volume.persistentVolumeClaim)
    return type(
      "PersistentVolumeClaim (a reference to a PersistentVolumeClaim in the same namespace)",
      ["ClaimName", volume.persistentVolumeClaim.claimName],
      ["ReadOnly", String(volume.persistentVolumeClaim.readOnly ?? false)],
    );
  if (volume.downwardAPI)
    return [
      ...type("DownwardAPI (a volume populated by information about the pod)"),
      "Items:",
      ...downwardLines(volume.downwardAPI.items ?? []),
    ];
  if (volume.projected) return projectedLines(volume.projected);
  if (volume.ephemeral) return ephemeralLines(volume.ephemeral);
  if (volume.image)
    return type(
      "Image (a container image or OCI artifact)",
      ["Reference", volume.image.reference ?? ""],
      ["PullPolicy", volume.image.pullPolicy ?? ""],
    );
  if (volume.nfs)
    return type(
      "NFS (an NFS mount that lasts the lifetime of a pod)",
      ["Server", volume.nfs.server],
      ["Path", volume.nfs.path],
      ["ReadOnly", String(volume.nfs.readOnly ?? false)],
    );
  return ["<unknown>"];
}

function type(name: string, ...fields: readonly (readonly [string, string | number])[]): Lines {
  return [`Type:\t${name}`, ...fields.map(([key, value]) => `${key}:\t${value}`)];
}

function downwardLines(
  items: readonly { path: string; fieldRef?: { fieldPath: string }; resourceFieldRef?: { resource: string } }[],
): Lines {
  return items.flatMap(({ path, fieldRef, resourceFieldRef }) => [
    ...(fieldRef ? [`  ${fieldRef.fieldPath} -> ${path}`] : []),
    ...(resourceFieldRef ? [`  ${resourceFieldRef.resource} -> ${path}`] : []),
  ]);
}

function projectedLines({ sources = [] }: NonNullable<Volume["projected"]>): Lines {
  const lines = [...type("Projected (a volume that contains injected data from multiple sources)")];
  for (const { secret, downwardAPI, configMap, serviceAccountToken } of sources) {
    if (secret) lines.push(`SecretName:\t${secret.name}`, `Optional:\t${secret.optional ?? false}`);
    else if (downwardAPI) lines.push("DownwardAPI:\ttrue");
    else if (configMap) lines.push(`ConfigMapName:\t${configMap.name}`, `Optional:\t${configMap.optional ?? false}`);
    else if (serviceAccountToken)
      lines.push(`TokenExpirationSeconds:\t${serviceAccountToken.expirationSeconds ?? 3600}`);
  }
  return lines;
}

function ephemeralLines({ volumeClaimTemplate }: NonNullable<Volume["ephemeral"]>): Lines {
  const lines = [
    ...type("EphemeralVolume (an inline specification for a volume that gets created and deleted with the pod)"),
  ];
  const spec = volumeClaimTemplate?.spec;
  if (!spec) return lines;
  return [
    ...lines,
    ...(spec.storageClassName ? [`StorageClass:\t${spec.storageClassName}`] : []),
    `Volume:\t${spec.volumeName ?? ""}`,
    "Labels:\t<none>",
    "Annotations:\t<none>",
    `Capacity:\t${spec.resources?.requests?.storage ?? ""}`,
    `Access Modes:\t${(spec.accessModes ?? []).map((mode) => ACCESS[mode] ?? mode).join(",")}`,
    ...(spec.volumeMode ? [`VolumeMode:\t${spec.volumeMode}`] : []),
  ];
}

export const ACCESS: Readonly<Record<string, string>> = {
  ReadWriteOnce: "RWO",
  ReadOnlyMany: "ROX",
  ReadWriteMany: "RWX",
  ReadWriteOncePod: "RWOP",
};

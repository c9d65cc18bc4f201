import { lstatSync, readdirSync, type Stats, statSync } from "node:fs";
import { join } from "node:path";
import { hasCode } from "#base";
import { EngineError } from "../../errors.ts";
import type { ContainerConfig } from "../../port.ts";
import type { OCIDevice } from "./spec.ts";

/** Directories of /dev that a container has of its own, or that hold no devices. */
const SKIPPED = new Set(["pts", "shm", "fd", "mqueue", "hugepages", ".lxc", ".lxd-mounts", ".udev", "console", "ptmx"]);

/** The device nodes of a container: every one of the host when privileged, else those of its config. */
export function devicesOf(config: ContainerConfig): OCIDevice[] {
  const asked = (config.devices ?? []).flatMap((device) =>
    devicesAt(device.hostPath, device.containerPath, device.permissions || "rwm"),
  );
  if (asked.length === 0 && (config.devices?.length ?? 0) > 0)
    throw new EngineError(
      "invalid-config",
      `no device node at ${config.devices?.map((device) => device.hostPath).join(", ")}`,
    );
  if (!config.security.privileged) return asked;
  const taken = new Set(asked.map((device) => device.path));
  return [...asked, ...devicesBelow("/dev").filter((device) => !taken.has(device.path))];
}

function devicesAt(hostPath: string, containerPath: string, access: string): OCIDevice[] {
  let status: Stats;
  try {
    status = statSync(hostPath);
  } catch (error) {
    throw new EngineError(
      "invalid-config",
      `device ${hostPath}: ${hasCode(error, "ENOENT") ? "no such file or directory" : error}`,
      { cause: error },
    );
  }
  if (!status.isDirectory()) return deviceOf(status, containerPath, access);
  return readdirSync(hostPath).flatMap((name) => devicesAt(join(hostPath, name), join(containerPath, name), access));
}

function devicesBelow(directory: string): OCIDevice[] {
  return readdirSync(directory, { withFileTypes: true }).flatMap((entry) => {
    const path = join(directory, entry.name);
    if (SKIPPED.has(entry.name)) return [];
    if (entry.isDirectory()) return devicesBelow(path);
    return entry.isCharacterDevice() || entry.isBlockDevice() ? deviceOf(lstatSync(path), path, "rwm") : [];
  });
}

function deviceOf(status: Stats, path: string, access: string): OCIDevice[] {
  if (!status.isCharacterDevice() && !status.isBlockDevice()) return [];
  // The kernel packs the numbers as makedev(3) does.
  const number = BigInt(status.rdev);
  const major = Number(((number >> 8n) & 0xfffn) | ((number >> 32n) & 0xfffff000n));
  const minor = Number((number & 0xffn) | ((number >> 12n) & 0xffffff00n));
  return [
    {
      path,
      type: status.isBlockDevice() ? "b" : "c",
      major,
      minor,
      fileMode: status.mode & 0o7777,
      uid: status.uid,
      gid: status.gid,
      access,
    },
  ];
}

/** A volume that is set up; one of `hostPath`, `device` and `image` is there. */
export interface MountedVolume {
  readonly hostPath?: string;
  /** A block device, for `volumeDevices`. */
  readonly device?: string;
  /** Reference of an image whose root is the volume. */
  readonly image?: string;
  readonly readOnly: boolean;
  /** Make `hostPath` as a directory when it is not there at the time a container is created. */
  readonly createMissing?: boolean;
  /** A group that the pod's processes get, from the annotation `pv.beta.kubernetes.io/gid`. */
  readonly group?: number;
}

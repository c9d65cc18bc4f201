import assert from "node:assert/strict";
import test from "node:test";
import { errorsOf } from "../support/errors-of.ts";

// Every message here is what kube-apiserver v1.36 answers.

type Case = readonly [kind: string, object: object, old: object | undefined, ...errors: string[]];

const topology = (...expressions: object[]) => ({ matchLabelExpressions: expressions });
const driver = { name: "a.b", nodeID: "i" };
const attachment = { attacher: "a.b", nodeName: "n", source: { persistentVolumeName: "pv" } };
const shown = '{"Attacher":"c.d","Source":{"PersistentVolumeName":"pv","InlineVolumeSpec":null},"NodeName":"n"}';

const CASES: readonly Case[] = [
  ["StorageClass", { provisioner: "a.b/c", reclaimPolicy: "Retain" }, undefined],
  ["StorageClass", {}, undefined, "provisioner: Required value"],
  [
    "StorageClass",
    { provisioner: "a.b/c", parameters: { "": "x" } },
    undefined,
    'parameters: Invalid value: "": field can not be empty.',
  ],
  [
    "StorageClass",
    { provisioner: "a.b/c", reclaimPolicy: "Recycle", volumeBindingMode: "x" },
    undefined,
    'reclaimPolicy: Unsupported value: "Recycle": supported values: "Delete", "Retain"',
    'volumeBindingMode: Unsupported value: "x": supported values: "Immediate", "WaitForFirstConsumer"',
  ],
  [
    "StorageClass",
    { provisioner: "a.b/c", allowedTopologies: [topology({ key: "a", values: ["b", "b"] })] },
    undefined,
    'allowedTopologies[0].matchLabelExpressions[0].values[1]: Duplicate value: "b"',
  ],
  [
    "StorageClass",
    { provisioner: "a.b/c", allowedTopologies: [{}] },
    undefined,
    'allowedTopologies[0].matchLabelExpressions: Duplicate value: ""',
  ],
  [
    "StorageClass",
    { provisioner: "z", parameters: { a: "c" } },
    { provisioner: "a.b/c", parameters: { a: "b" } },
    'parameters: Invalid value: {"a":"c"}: field is immutable',
    'provisioner: Invalid value: "z": field is immutable',
  ],
  [
    "VolumeAttributesClass",
    { driverName: "a.b" },
    undefined,
    "parameters: Required value: must contain at least one key/value pair",
  ],
  [
    "VolumeAttributesClass",
    { driverName: "a.b", parameters: { a: "c" } },
    { driverName: "a.b", parameters: { a: "b" } },
    "parameters: Forbidden: updates to parameters are forbidden.",
  ],
  ["VolumeAttachment", { spec: attachment }, undefined],
  [
    "VolumeAttachment",
    { spec: { ...attachment, source: {} } },
    undefined,
    "spec.source: Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName",
  ],
  [
    "VolumeAttachment",
    { spec: { ...attachment, attacher: "c.d" } },
    { spec: attachment },
    `spec: Invalid value: ${shown}: field is immutable`,
  ],
  [
    "CSIDriver",
    { spec: { fsGroupPolicy: "x", tokenRequests: [{ audience: "a" }, { audience: "a", expirationSeconds: 5 }] } },
    undefined,
    'spec.fsGroupPolicy: Unsupported value: "x": supported values: "File", "None", "ReadWriteOnceWithFSType"',
    'spec.tokenRequests[1].audience: Duplicate value: "a"',
    "spec.tokenRequests[1].expirationSeconds: Invalid value: 5: may not specify a duration less than 10 minutes",
  ],
  [
    "CSIDriver",
    { spec: { attachRequired: false } },
    { spec: {} },
    "spec.attachedRequired: Invalid value: false: field is immutable",
  ],
  ["CSINode", { spec: { drivers: [driver, driver] } }, undefined, 'spec.drivers[1].name: Duplicate value: "a.b"'],
  [
    "CSINode",
    { spec: { drivers: [{ ...driver, nodeID: "j", topologyKeys: ["a/b"] }] } },
    { spec: { drivers: [driver] } },
    'spec.drivers: Invalid value: {"Name":"a.b","NodeID":"j","TopologyKeys":["a/b"],"Allocatable":null}: field is immutable',
  ],
  [
    "CSIStorageCapacity",
    { storageClassName: "s", capacity: "-1" },
    undefined,
    'capacity: Invalid value: "-1": must be greater than or equal to 0',
  ],
];

for (const [kind, object, old, ...errors] of CASES)
  test(`${kind} ${JSON.stringify(object)}`, () =>
    assert.deepEqual(errorsOf("storage.k8s.io/v1", kind, object, old), errors));

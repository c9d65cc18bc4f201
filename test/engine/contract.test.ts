import { engineContract } from "../../src/engine/contract.test-support.ts";
import { openNative } from "./native.test-support.ts";

engineContract("native engine", openNative, { image: "slim/busybox:latest" });

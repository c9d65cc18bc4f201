import { engineContract } from "../../src/engine/contract.test-support.ts";
import { openNative } from "./native.test-support.ts";

engineContract("native engine", openNative, { image: "slim/busybox:latest" });

engineContract("native engine with runc", () => openNative({ runtime: "runc" }), { image: "slim/busybox:latest" });

engineContract("native engine without koffi", () => openNative({ koffi: false }), { image: "slim/busybox:latest" });

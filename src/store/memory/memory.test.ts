import { storeContract } from "../contract.ts";
import { createMemoryStore } from "./mod.ts";

storeContract("memory", async (window) => createMemoryStore({ window }));

export { type LocalServices, type LocalServicesDeps, startLocalServices } from "./local-services.ts";

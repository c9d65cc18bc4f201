export { createJsonPath, type JsonPath, type JsonPathOptions, printValue } from "./evaluate.ts";
export { JsonPathError } from "./parse.ts";

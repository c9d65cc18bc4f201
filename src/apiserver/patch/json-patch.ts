import { applyPatch, type Operation } from "rfc6902";
import { type ApiObject, badRequest, failure } from "#kinds";

/** As the API server's limit on operations in one patch. */
const MAX_OPERATIONS = 10_000;

/** RFC 6902 on a private copy. @throws StatusError 400, 413, 422 */
export function applyJsonPatch(object: ApiObject, patch: unknown): ApiObject {
  if (!Array.isArray(patch))
    throw badRequest("error decoding patch: json: cannot unmarshal object into Go value of type jsonpatch.Patch");
  if (patch.length > MAX_OPERATIONS) {
    throw failure(
      413,
      "RequestEntityTooLarge",
      `Request entity too large: The allowed maximum operations in a JSON patch is ${MAX_OPERATIONS}, got ${patch.length}`,
    );
  }
  for (const operation of patch as Operation[]) checkOperation(operation);
  // the document as a whole may be replaced, so it hangs below a root of ours
  const holder = { root: object as unknown };
  const rooted = (patch as (Operation & { from?: string })[]).map((operation) => ({
    ...operation,
    path: `/root${operation.path}`,
    ...(operation.from === undefined ? {} : { from: `/root${operation.from}` }),
  }));
  for (const [i, operation] of rooted.entries()) {
    const [error] = applyPatch(holder, [operation as Operation]);
    if (error) throw refused(patch[i] as Operation, error);
  }
  const result = holder.root;
  if (typeof result !== "object" || result === null || Array.isArray(result))
    throw badRequest("the patch leaves no object");
  return result as ApiObject;
}

function checkOperation(operation: Operation & { from?: string }): void {
  if (typeof operation !== "object" || operation === null || typeof operation.op !== "string") {
    throw badRequest('error decoding patch: an operation has no "op"');
  }
  for (const pointer of [operation.path, operation.from]) {
    if (pointer === undefined) continue;
    if (typeof pointer !== "string" || (pointer !== "" && !pointer.startsWith("/")))
      throw unprocessable(`json pointer ${JSON.stringify(pointer)} is invalid`);
    if (pointer.split("/").includes("__proto__"))
      throw unprocessable(`json pointer ${JSON.stringify(pointer)} is not allowed`);
  }
  if (typeof operation.path !== "string") throw unprocessable('an operation has no "path"');
}

function refused(operation: Operation, error: Error): Error {
  if (error.name === "TestError") return unprocessable(`testing value ${operation.path} failed: test failed`);
  if (error.name === "MissingError") {
    const verb =
      operation.op === "remove"
        ? "Unable to remove nonexistent key"
        : operation.op === "replace"
          ? "replace operation does not apply: doc is missing key"
          : `${operation.op} operation does not apply: doc is missing path`;
    return unprocessable(
      operation.op === "remove"
        ? `remove operation does not apply: doc is missing path: "${operation.path}": missing value`
        : `${verb}: ${operation.path}: missing value`,
    );
  }
  return unprocessable(error.message);
}

function unprocessable(message: string): Error {
  return failure(422, "Invalid", `the server rejected our request due to an error in our request: ${message}`, {});
}

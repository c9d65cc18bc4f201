import type { ApiRequest, ApiResponse } from "#kinds";

/** Answers `/openapi/v2`, `/openapi/v3` and below; undefined for other paths. */
export interface OpenApi {
  handle(request: ApiRequest): Promise<ApiResponse | undefined>;
}

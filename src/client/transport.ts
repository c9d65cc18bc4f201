import type { ApiRequest, ApiResponse } from "#kinds";

/** Carries one call to an API server. The in-process one is the server's own handler; HTTP is in `http-transport.ts`. */
export interface Transport {
  call(request: ApiRequest): Promise<ApiResponse>;
}

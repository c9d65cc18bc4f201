import type { Clock, Logger, Random } from "#base";
import {
  createAccessReviews,
  createIdentityReviews,
  createOpenIDDiscovery,
  type ApiServer,
  createAdmissionChain,
  keepPolicyStatus,
  createApiServer,
  createOpenApi,
  createQuotaCharges,
  createReader,
  createConversions,
  createCustomSchemas,
  createPostReview,
  type CustomResources,
  createServiceAccountTokens,
  createServiceAllocation,
  type AdmissionPlugin,
  type Authorizer,
  createEscalationCheck,
  createMastersAuthorizer,
  createNodeAuthorizer,
  createRbacAuthorizer,
  createUnionAuthorizer,
  type Health,
  type Reader,
  type ServiceAccountTokens,
  startCustomResources,
  startLocalServices,
  versionInfo,
} from "#apiserver";
import { type Client, createClient, createInformers, type Informers, type Transport } from "#client";
import { createScheme, type MutableScheme, type NodeConnector, type UserInfo } from "#kinds";
import type { Store } from "#store";

export interface ControlPlaneDeps {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
}

export interface ControlPlaneOptions {
  readonly serviceCIDR: string;
  /** PEM private key of ServiceAccount tokens. */
  readonly serviceAccountKey: string;
  /** `host:port` that discovery tells; known once the listener is up. */
  serverAddress(): string;
  readonly health: Health;
  connector(node: string): NodeConnector | undefined;
}

/** The API server with what it needs, and clients of it inside the process. */
export interface ControlPlane {
  readonly server: ApiServer;
  readonly scheme: MutableScheme;
  readonly reader: Reader;
  readonly clock: Clock;
  readonly authorizer: Authorizer;
  readonly tokens: ServiceAccountTokens;
  readonly customResources: CustomResources;
  /** A client that acts as `user`; calls go straight to the server's pipeline. */
  clientAs(user: UserInfo, userAgent: string): Client;
  transportAs(user: UserInfo): Transport;
  informersOf(client: Client): Informers;
}

export function createControlPlane(deps: ControlPlaneDeps, options: ControlPlaneOptions): ControlPlane {
  const { store, clock, random, logger } = deps;
  const scheme = createScheme();
  const reader = createReader(store, scheme);
  const rbac = createRbacAuthorizer({ reader });
  const authorizer = createUnionAuthorizer([createMastersAuthorizer(), createNodeAuthorizer({ reader }), rbac]);
  const tokens = createServiceAccountTokens({ reader, clock, random }, { key: options.serviceAccountKey });
  const admission: AdmissionPlugin[] = [
    ...createAdmissionChain({
      reader,
      scheme,
      authorizer,
      random,
      clock,
      logger: logger.child({ part: "admission" }),
      chargeQuota: createQuotaCharges({ store, scheme }),
    }),
    createEscalationCheck({ rbac, authorizer }),
  ];
  const server = createApiServer(
    {
      store,
      scheme,
      reader,
      clock,
      random,
      logger: logger.child({ part: "apiserver" }),
      authorizer,
      admission,
      hooks: new Map([
        ["/services", createServiceAllocation({ reader, random }, { serviceCIDR: options.serviceCIDR })],
      ]),
      connector: (node) => options.connector(node),
      openapi: createOpenApi(scheme, createCustomSchemas()),
      virtual: new Map([
        ["/serviceaccounts/token", tokens.tokenRequests],
        ...createAccessReviews({ authorizer, rbac }),
        ...createIdentityReviews({ clock, tokens }),
      ]),
      routes: [createOpenIDDiscovery(tokens, options)],
    },
    {
      version: versionInfo({
        platform: `linux/${process.arch === "x64" ? "amd64" : process.arch}`,
        runtime: process.version,
      }),
      serverAddress: options.serverAddress,
      health: options.health,
    },
  );
  const customResources = startCustomResources({
    store,
    scheme,
    reader,
    clock,
    logger: logger.child({ part: "crd" }),
    conversions: createConversions({ post: createPostReview({ reader }), random }),
  });
  startLocalServices({ store, scheme, clock, random, logger: logger.child({ part: "aggregator" }) });
  // lives as long as the store, as the custom resources do
  keepPolicyStatus({ store, scheme, reader, logger: logger.child({ part: "admission" }) });
  const transportAs = (user: UserInfo): Transport => ({
    // what the listener does for requests from outside
    call: ({ path, ...request }) =>
      server.handle({ ...request, path: path.includes("%") ? decodeURIComponent(path) : path, user }),
  });
  return {
    server,
    scheme,
    reader,
    clock,
    authorizer,
    tokens,
    customResources,
    clientAs: (user, userAgent) => createClient(transportAs(user), { userAgent }),
    transportAs,
    informersOf: (client) => createInformers({ client, clock, random, logger }),
  };
}

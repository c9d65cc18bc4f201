import { Environment } from "@marcbachmann/cel-js";
import { registerAddresses } from "./libraries/addresses.ts";
import { registerFormats } from "./libraries/formats.ts";
import { registerLists } from "./libraries/lists.ts";
import { registerMacros } from "./libraries/macros.ts";
import { registerQuantities } from "./libraries/quantities.ts";
import { registerRegularExpressions } from "./libraries/regular-expressions.ts";
import { registerSemver } from "./libraries/semver.ts";
import { registerStrings } from "./libraries/strings.ts";
import { registerUrls } from "./libraries/urls.ts";

let base: Environment | undefined;

/**
 * A new environment with everything that Kubernetes v1.36 gives CEL (optionals, strings, lists, sets, regular expressions,
 * quantities, addresses, URLs, formats, versions), to declare variables and types in. Cheap: the libraries are shared.
 * @see https://kubernetes.io/docs/reference/using-api/cel/
 */
export function createCelEnvironment(variables: Readonly<Record<string, string>> = {}): Environment {
  base ??= withLibraries();
  const env = base.clone();
  for (const [name, type] of Object.entries(variables)) env.registerVariable(name, type);
  return env;
}

function withLibraries(): Environment {
  const env = new Environment({
    enableOptionalTypes: true,
    // the original refuses literals of mixed types but for dyn(), which the library would refuse too
    homogeneousAggregateLiterals: false,
    limits: {
      maxAstNodes: 100_000,
      maxDepth: 250,
      maxListElements: 10_000,
      maxMapEntries: 10_000,
      maxCallArguments: 32,
    },
  });
  registerStrings(env);
  registerRegularExpressions(env);
  registerLists(env);
  registerQuantities(env);
  registerAddresses(env);
  registerUrls(env);
  registerFormats(env);
  registerSemver(env);
  registerMacros(env);
  return env;
}

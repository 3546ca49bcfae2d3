import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { goModule } from './go-programs.js';
import { release } from './kubenode.js';

interface Definition {
  readonly format?: string;
  readonly properties?: object;
  readonly description?: string;
  readonly 'x-kubernetes-group-version-kind'?: ReadonlyArray<{ readonly group: string; readonly version: string; readonly kind: string }>;
}

/**
 * Writes the schemas of the cluster's version of Kubernetes, made from its own OpenAPI, for kubeconform. Unknown fields are errors.
 *
 * @returns the `-schema-location`
 */
export async function kubeSchemas(dir: string): Promise<string> {
  const source = join(await goModule(`k8s.io/kubernetes@v${await release()}`), 'api/openapi-spec/swagger.json');
  const { definitions } = JSON.parse(await readFile(source, 'utf8')) as { definitions: Record<string, Definition> };
  await mkdir(dir, { recursive: true });
  await writeFile(
    join(dir, 'all.json'),
    JSON.stringify({ definitions: Object.fromEntries(Object.entries(definitions).map(([name, one]) => [name, strict(one)])) }),
  );
  for (const [name, { 'x-kubernetes-group-version-kind': kinds = [] }] of Object.entries(definitions))
    for (const { group, version, kind } of kinds) {
      const file = [kind, ...(group === '' ? [] : [group.split('.')[0]]), version].join('-').toLowerCase();
      await writeFile(join(dir, `${file}.json`), JSON.stringify({ $ref: `all.json#/definitions/${name}` }));
    }
  return join(dir, '{{.ResourceKind}}{{.KindSuffix}}.json');
}

/** Translates a definition of Kubernetes' OpenAPI to JSON Schema. Definitions nest by references only. */
function strict(definition: Definition): object {
  if (definition.format === 'int-or-string') return { type: ['string', 'integer'] };
  if (definition.description?.startsWith('Quantity is')) return { type: ['string', 'number'] };
  return definition.properties ? { ...definition, additionalProperties: false } : definition;
}

import { existsSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Cluster } from './cluster.js';
import { run } from './command.js';
import { cacheDir } from './settings.js';

const VERSION = 'v0.8.0';

interface Schema {
  readonly type?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly additionalProperties?: unknown;
  readonly 'x-kubernetes-group-version-kind'?: ReadonlyArray<{ group: string; version: string; kind: string }>;
}

/** Built once where it is not installed. */
async function kubeconform(): Promise<string> {
  const bin = join(cacheDir(), `kubeconform-${VERSION}`);
  const program = join(bin, 'kubeconform');
  if (!existsSync(program))
    await run('go', ['install', `github.com/yannh/kubeconform/cmd/kubeconform@${VERSION}`], { env: { GOBIN: bin, CGO_ENABLED: '0' } });
  return program;
}

/** No field that the API does not know: the API server itself would drop it without a word. */
function strict(schema: Schema): Schema {
  return schema.type === 'object' && schema.properties && schema.additionalProperties === undefined
    ? { ...schema, additionalProperties: false }
    : schema;
}

/** The definitions that one refers to, itself included. */
function reachable(name: string, all: Readonly<Record<string, Schema>>, found: Record<string, Schema> = {}): Record<string, Schema> {
  const schema = all[name];
  if (!schema || found[name]) return found;
  found[name] = strict(schema);
  for (const [, next = ''] of JSON.stringify(schema).matchAll(/"#\/components\/schemas\/([^"]+)"/g)) reachable(next, all, found);
  return found;
}

/**
 * Writes schemas as kubeconform wants them, one file per kind, from what the API server says of itself. They are of its very
 * version, and nothing has to be downloaded.
 */
async function writeSchemas(cluster: Cluster, groupVersion: string, kinds: ReadonlySet<string>, dir: string): Promise<void> {
  const openApi = JSON.parse(await cluster.kubectl(['get', '--raw', `/openapi/v3/${groupVersion}`])) as {
    components: { schemas: Record<string, Schema> };
  };
  const all = openApi.components.schemas;
  for (const [name, schema] of Object.entries(all)) {
    for (const { group, version, kind } of schema['x-kubernetes-group-version-kind'] ?? []) {
      if (!kinds.has(kind)) continue;
      const file = [kind.toLowerCase(), group.split('.')[0], version].filter(Boolean).join('-');
      const document = { $ref: `#/components/schemas/${name}`, components: { schemas: reachable(name, all) } };
      await writeFile(join(dir, `${file}.json`), JSON.stringify(document));
    }
  }
}

/**
 * Checks manifests against the schemas of the cluster's own API server.
 *
 * @param yaml documents as `kubectl kustomize` prints them
 * @param groupVersions those they use, as in the paths of the API: `api/v1`, `apis/networking.k8s.io/v1`
 * @throws Error with what is wrong with which object
 */
export async function checkManifests(cluster: Cluster, yaml: string, groupVersions: readonly string[], dir: string): Promise<void> {
  await mkdir(dir, { recursive: true });
  const kinds = new Set([...yaml.matchAll(/^kind: (\S+)$/gm)].map(([, kind = '']) => kind));
  for (const groupVersion of groupVersions) await writeSchemas(cluster, groupVersion, kinds, dir);
  const location = join(dir, '{{.ResourceKind}}{{.KindSuffix}}.json');
  await run(await kubeconform(), ['-strict', '-summary', '-schema-location', location, '-'], { input: yaml });
}

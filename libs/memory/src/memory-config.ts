import { z } from 'zod';

const text = () => z.string().trim().min(1, 'must not be empty').optional();

/** Settings of memory's database, the same for every service: `requireMemory(baseConfig.extend(memoryConfig.shape))`. */
export const memoryConfig = z.object({
  /** Database that holds memory. */
  ETUDE_MEMORY_ADAPTER: z.enum(['sqlite', 'qdrant'], { error: 'must be "sqlite" or "qdrant"' }).default('sqlite'),
  /** File of the SQLite adapter; created if there is none. */
  ETUDE_MEMORY_PATH: text(),
  /** URL of the Qdrant server. */
  ETUDE_QDRANT_URL: z.url({ protocol: /^https?$/, error: 'must be an http:// or https:// URL' }).optional(),
  /** Key of the Qdrant server. */
  ETUDE_QDRANT_API_KEY: text(),
  /** PEM file of the authority that signed the Qdrant server's certificate, if the system doesn't know it. */
  ETUDE_QDRANT_CA_PATH: text(),
  /** Prefix of the names of Qdrant's collections. */
  ETUDE_QDRANT_COLLECTION_PREFIX: z
    .string()
    .regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be 1 to 64 letters, digits, "-" and "_"')
    .default('etude'),
  /** Replicas of each collection that Etude creates in Qdrant. Each write waits for all replicas. Unset: the server's default. */
  ETUDE_QDRANT_REPLICAS: z.coerce.number().int().min(1).max(16).optional(),
  /** Time limit of one request to Qdrant, in ms. */
  ETUDE_QDRANT_TIMEOUT_MS: z.coerce.number().int().min(100).max(600_000).default(10_000),
});
export type MemoryConfig = z.infer<typeof memoryConfig>;

/** Refuses an adapter without its address. Runs also if other settings are wrong, so that all errors are reported at once. */
export function requireMemory<S extends z.ZodType<MemoryConfig>>(schema: S): S {
  return schema
    .refine(({ ETUDE_MEMORY_ADAPTER: adapter, ETUDE_MEMORY_PATH: path }) => adapter !== 'sqlite' || path !== undefined, {
      path: ['ETUDE_MEMORY_PATH'],
      error: 'the path of the SQLite file that holds memory, the same for every service',
      when: () => true,
    })
    .refine(({ ETUDE_MEMORY_ADAPTER: adapter, ETUDE_QDRANT_URL: url }) => adapter !== 'qdrant' || url !== undefined, {
      path: ['ETUDE_QDRANT_URL'],
      error: 'the address of the Qdrant server that holds memory, such as "http://127.0.0.1:6333", the same for every service',
      when: () => true,
    });
}

import { createHash } from 'node:crypto';
import { copyFileSync, createReadStream, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { EtudeError } from '@etude/contracts/errors';
import type { Embedder } from '@etude/domain/ports/model';
import { type MemoryPlace, modelOf, openStore } from '@etude/memory/open-memory';
import { modelOfFile, snapshotFile } from '@etude/memory/sqlite/file-upkeep';
import { copyRecords } from '@etude/memory/upkeep/record-upkeep';
import { clearRedis, copyRedis, isRedisEmpty, loadRedis, placeRedis } from '@etude/queue/redis/whole-redis';
import { z } from 'zod';

/** Raised when older readers can no longer read a backup. */
const BACKUP_VERSION = 1;
/** How long SQLite's writers are held: less than they wait for the lock, and more than the 5 s that Redis waits for other replicas. */
const HELD_MS = 10_000;
const MANIFEST = 'manifest.json';
const REDIS = 'redis.rdb';
const MEMORY = 'memory.sqlite';

export const Manifest = z.object({
  etude: z.literal('backup'),
  version: z.number().int().min(1),
  /** Version of Etude that made it. */
  madeBy: z.string(),
  /** ms since 1970, before the first part was read. */
  at: z.number().int(),
  memory: z.enum(['sqlite', 'qdrant']),
  files: z.array(z.object({ name: z.string().regex(/^[\w.-]+$/), bytes: z.number().int(), sha256: z.string() })),
});
export type Manifest = z.infer<typeof Manifest>;

interface Installation {
  readonly redisUrl: string;
  readonly queuePrefix: string;
  readonly memory: MemoryPlace;
  readonly embedder: Embedder;
  /** Environment of redis-cli. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly onProgress: (line: string) => void;
}

async function digestOf(path: string): Promise<string> {
  const sum = createHash('sha256');
  for await (const bytes of createReadStream(path)) sum.update(bytes as Buffer);
  return sum.digest('hex');
}

/**
 * Copies Redis and memory into a new folder while services run. `files`, such as keys, are copied too.
 *
 * The copy is a state that a crash could have left. Memory is never copied as of an earlier time than Redis. A write leaves Redis only after
 * memory has it, so no write is missing in both. A write that both have is repeated after a restore, and memory applies it once. SQLite's
 * writers wait, at most 10 s, until Redis has begun its copy, so both have the same time. Qdrant is read after Redis.
 * @throws EtudeError FAILED_PRECONDITION if the folder isn't empty; QUEUE_UNAVAILABLE, MEMORY_UNAVAILABLE: the folder then has no manifest
 */
export async function backUp(installation: Installation, folder: string, files: readonly string[], madeBy: string): Promise<Manifest> {
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  if (readdirSync(folder).length > 0) throw refused(`${folder} is not empty; name a new folder`);
  const at = Date.now();
  const { redisUrl, memory, environment, onProgress } = installation;
  onProgress('copying Redis');
  const take = () => copyRedis(redisUrl, join(folder, REDIS), environment);
  if (memory.adapter === 'sqlite') await copyWithFile(memory.path, join(folder, MEMORY), take);
  else {
    await take().copied;
    await copyBetween(memory, { adapter: 'sqlite', path: join(folder, MEMORY) }, installation);
  }
  for (const file of files) copyFileSync(file, join(folder, basename(file)));
  const manifest: Manifest = { etude: 'backup', version: BACKUP_VERSION, madeBy, at, memory: memory.adapter, files: [] };
  for (const name of readdirSync(folder).toSorted())
    manifest.files.push({ name, bytes: statSync(join(folder, name)).size, sha256: await digestOf(join(folder, name)) });
  writeFileSync(join(folder, MANIFEST), `${JSON.stringify(manifest, null, 2)}\n`, { mode: 0o600 });
  return manifest;
}

/** Copies Redis and memory as of one time. If Redis begins its copy too late, memory's writers go on, and the file is copied again later. */
async function copyWithFile(path: string, copy: string, take: () => ReturnType<typeof copyRedis>): Promise<void> {
  let redis: ReturnType<typeof copyRedis> | undefined;
  let isTaken = true;
  await snapshotFile(path, copy, async () => {
    redis = take();
    isTaken = await Promise.race([redis.taken.then(() => true), sleep(HELD_MS, false, { ref: false })]);
  });
  await redis?.taken;
  if (!isTaken) {
    rmSync(copy);
    await snapshotFile(path, copy, () => Promise.resolve());
  }
  await redis?.copied;
}

/** Copies all records. The stores may have different embedding models. */
async function copyBetween(from: MemoryPlace, to: MemoryPlace, { embedder, onProgress }: Installation): Promise<void> {
  const source = await openStore(from, from.adapter === 'sqlite' ? modelOfFile(from.path) : modelOf(embedder));
  const target = await openStore(to, modelOf(embedder));
  try {
    await copyRecords(source, target, embedder, (records) => onProgress(`${records} records of memory`));
  } finally {
    await source.close();
    await target.close();
  }
}

const refused = (message: string) => new EtudeError('FAILED_PRECONDITION', message);

/** Reads and checks a backup. @throws EtudeError FAILED_PRECONDITION if the backup isn't whole, or a later version made it */
async function readBackup(folder: string, version: string): Promise<Manifest> {
  const path = join(folder, MANIFEST);
  if (!existsSync(path)) throw refused(`${folder} holds no complete backup: ${MANIFEST} is missing; name the folder of a finished backup`);
  const manifest = Manifest.parse(JSON.parse(readFileSync(path, 'utf8')));
  if (manifest.version > BACKUP_VERSION || version.localeCompare(manifest.madeBy, 'en', { numeric: true }) < 0)
    throw refused(
      `version ${manifest.madeBy} of Etude made this backup, and this is ${version}; restore it with that version or a later one`,
    );
  for (const { name, sha256 } of manifest.files)
    if (!existsSync(join(folder, name)) || (await digestOf(join(folder, name))) !== sha256)
      throw refused(`${name} of the backup is missing or damaged: its SHA-256 is not the one in ${MANIFEST}; use another backup`);
  return manifest;
}

/**
 * Restores a backup into an installation whose services are stopped.
 *
 * @param redisFolder data of a Redis that isn't running; null: the Redis at `redisUrl` is filled over the network
 * @param force whether to replace the files of the installation, and the keys of its Redis; a Qdrant with records is refused
 * @throws EtudeError FAILED_PRECONDITION if the installation has data; as `readBackup`, before anything is changed
 */
export async function restore(
  installation: Installation,
  folder: string,
  { redisFolder, force, version }: { readonly redisFolder: string | null; readonly force: boolean; readonly version: string },
): Promise<Manifest> {
  const { memory, redisUrl, queuePrefix, onProgress } = installation;
  const manifest = await readBackup(folder, version);
  const appended = redisFolder === null ? '' : join(redisFolder, 'appendonlydir');
  const isEmpty = redisFolder === null ? await isRedisEmpty(redisUrl, queuePrefix) : !existsSync(appended);
  if (!force && !isEmpty) throw refused(`Redis has data of an installation; restore into an empty Redis, or replace the data with --force`);
  const isQdrant = memory.adapter === 'qdrant';
  const way = isQdrant ? 'or delete its collections first' : 'or replace the records with --force';
  if ((isQdrant || !force) && (await hasMemory(installation))) throw refused(`memory has records; restore into an empty memory, ${way}`);
  onProgress('restoring Redis');
  if (redisFolder === null) {
    await clearRedis(redisUrl, queuePrefix);
    await loadRedis(join(folder, REDIS), redisUrl);
  } else {
    rmSync(appended, { recursive: true, force: true });
    placeRedis(join(folder, REDIS), redisFolder);
  }
  onProgress('restoring memory');
  if (isQdrant) await copyBetween({ adapter: 'sqlite', path: join(folder, MEMORY) }, memory, installation);
  else {
    for (const suffix of ['', '-wal', '-shm']) rmSync(`${memory.path}${suffix}`, { force: true });
    copyFileSync(join(folder, MEMORY), memory.path);
  }
  return manifest;
}

async function hasMemory({ memory, embedder }: Installation): Promise<boolean> {
  if (memory.adapter === 'sqlite') return existsSync(memory.path);
  const store = await openStore(memory, modelOf(embedder));
  try {
    return (await store.tenants()).length > 0;
  } finally {
    await store.close();
  }
}

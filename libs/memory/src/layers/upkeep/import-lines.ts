import { EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { Embedder } from '@etude/domain/ports/embedder';
import type { MemoryRecord, RecordStore } from '../../record-store.js';
import type { ImportReport, Progress } from '../memory-upkeep.js';
import { insertsOf } from '../record-inserts.js';
import { isErased } from './erasure-marks.js';
import { LINE_BYTES_MAX, readHeader } from './line-format.js';
import { type ProposeSkill, runnableSkill } from './proposed-skill.js';
import { readRecord } from './read-record.js';

export interface ImportDeps {
  readonly store: RecordStore;
  readonly embedder: Embedder;
}

export interface ImportOptions {
  readonly onProgress?: (progress: Progress) => void;
  readonly signal?: AbortSignal;
  /**
   * Takes skills that could run, as candidates, in place of memory: whoever imports them is not believed that they were verified.
   * Absent: they are stored as they are.
   */
  readonly proposeSkill?: ProposeSkill;
}

interface Numbered {
  readonly line: number;
  readonly record: MemoryRecord;
}

/** Records that are embedded and written at once, or one where that has more characters. */
const BATCH_RECORDS = 128;
const BATCH_CHARS = 2_000_000;
const REFUSED_MAX = 100;

/**
 * Takes in the lines of an export. Each record is inserted under its key, so that lines that were taken in before change nothing, and
 * an import that was cut off is done again from the start. A record that is there with another body stays as it is.
 *
 * @throws EtudeError INVALID_ARGUMENT or FAILED_PRECONDITION for a wrong header, before anything is written; whatever ends it later,
 *   what was taken in until then stays
 */
export async function importRecords(
  deps: ImportDeps,
  tenant: string,
  lines: AsyncIterable<string>,
  options: ImportOptions,
): Promise<ImportReport> {
  const intake = new Intake(deps, tenant, options);
  for await (const line of lines) {
    options.signal?.throwIfAborted();
    await intake.take(line);
  }
  return intake.end();
}

class Intake {
  #lines = 0;
  #added = 0;
  #unchanged = 0;
  #isBegun = false;
  #chars = 0;
  #batch: Numbered[] = [];
  readonly #refused: Array<{ line: number; reason: string }> = [];

  readonly #deps: ImportDeps;
  readonly #tenant: string;
  readonly #options: ImportOptions;

  constructor(deps: ImportDeps, tenant: string, options: ImportOptions) {
    this.#deps = deps;
    this.#tenant = tenant;
    this.#options = options;
  }

  async take(text: string): Promise<void> {
    this.#lines += 1;
    if (text.length <= LINE_BYTES_MAX && text.trim() === '') return;
    if (!this.#isBegun) {
      readHeader(text.replace(/^\uFEFF/, ''));
      this.#isBegun = true;
      return;
    }
    const read = readRecord(this.#tenant, text);
    if ('refused' in read) return this.#refuse(this.#lines, read.refused);
    if (this.#options.proposeSkill !== undefined && read.record.kind === 'skill') {
      const skill = runnableSkill(read.record);
      if (skill !== null) return this.#propose(skill, this.#options.proposeSkill);
    }
    this.#batch.push({ line: this.#lines, record: read.record });
    this.#chars += text.length;
    if (this.#batch.length >= BATCH_RECORDS || this.#chars >= BATCH_CHARS) await this.#flush();
  }

  async end(): Promise<ImportReport> {
    if (!this.#isBegun)
      throw new EtudeError('INVALID_ARGUMENT', 'there is nothing to import: the first line has to be the header of an export', {
        field: 'lines',
      });
    await this.#flush();
    return { lines: this.#lines, added: this.#added, unchanged: this.#unchanged, refused: this.#refused };
  }

  async #flush(): Promise<void> {
    const batch = this.#batch;
    [this.#batch, this.#chars] = [[], 0];
    if (batch.length > 0) await this.#insert(batch);
    this.#options.onProgress?.({ done: this.#lines, total: null });
  }

  /** Where one of them belongs to somebody who was erased, each is tried by itself. */
  async #insert(batch: readonly Numbered[]): Promise<void> {
    const { store, embedder } = this.#deps;
    const changes = await insertsOf(
      embedder,
      batch.map(({ record }) => record),
    );
    try {
      const done = await store.write(this.#tenant, changes);
      for (const [i, one] of batch.entries()) {
        if (done[i] === true) this.#added += 1;
        else await this.#compare(one);
      }
    } catch (error) {
      if (!isErased(error)) throw error;
      const [only] = batch;
      if (batch.length > 1 || only === undefined) for (const one of batch) await this.#insert([one]);
      else this.#refuse(only.line, (error as Error).message);
    }
  }

  /** The same code and tests under the same name are there already, whatever became of them. */
  async #propose(skill: Skill, propose: ProposeSkill): Promise<void> {
    const { tenant, agent } = skill.scope;
    const filter = { kinds: ['skill'], where: { name: skill.name, digest: skill.digest } } as const;
    const known = await this.#deps.store.find({ tenant, agent }, 'procedural', filter, { order: 'newest', limit: 1 });
    if (known.length > 0) this.#unchanged += 1;
    else {
      await propose(skill);
      this.#added += 1;
    }
  }

  async #compare({ line, record }: Numbered): Promise<void> {
    const { layer, kind, key, scope, body } = record;
    const [known] = await this.#deps.store.load({ tenant: this.#tenant, agent: null }, layer, kind, [key]);
    const isSame = known !== undefined && known.body === body && known.scope.agent === scope.agent && known.scope.user === scope.user;
    if (isSame) this.#unchanged += 1;
    else this.#refuse(line, `the ${kind} ${JSON.stringify(key)} is there with other content; it was left as it is`);
  }

  #refuse(line: number, reason: string): void {
    if (this.#refused.length < REFUSED_MAX) this.#refused.push({ line, reason });
  }
}

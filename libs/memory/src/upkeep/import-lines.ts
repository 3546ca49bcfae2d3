import { insertsOf, parseBody } from '../layers/records.js';
import type { ImportReport } from '../memory.js';
import type { MemoryRecord } from '../record-store.js';
import { isErased } from './erasure-marks.js';
import { readHeader, readLine } from './export-lines.js';
import { importOf, inOrder, proposalOf, type ProposeSkill, readRecord, type ToldSkill } from './imported-record.js';
import type { UpkeepDeps } from './record-upkeep.js';
import { errorCode, EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import { setImmediate as letOthers } from 'node:timers/promises';

export interface ImportOptions {
  readonly signal?: AbortSignal;
  /**
   * Registers the skills as candidates after all lines were read, because the import's claims of verification and approval aren't trusted.
   * Absent: skills are stored as they are.
   */
  readonly proposeSkill?: ProposeSkill;
  /** The reason why the text of a line is refused; null: the text is accepted. */
  readonly reasonAgainst?: (line: string) => string | null;
}

/** Maximum number of lines of one request to a service. */
export const REQUEST_LINES_MAX = 20_000;

interface Numbered {
  readonly line: number;
  readonly record: MemoryRecord;
}

/** Limits of a batch that is embedded and written at once. The record that reaches the limit is the last of its batch. */
const BATCH_RECORDS = 128;
const BATCH_CHARS = 2_000_000;
const REFUSED_MAX = 100;
/** Error codes that concern one record. Any other error ends the import. */
const OF_ONE_RECORD: ReadonlySet<string> = new Set(['PERMISSION_DENIED', 'FAILED_PRECONDITION', 'INVALID_ARGUMENT']);

/**
 * Imports the lines of an export. Records are inserted under their keys, so importing the same lines again changes nothing. An existing
 * record stays as it is. A line that differs from it is refused.
 *
 * @throws EtudeError INVALID_ARGUMENT or FAILED_PRECONDITION for a wrong header. After a failure, records imported before stay
 */
export async function importRecords(
  deps: UpkeepDeps,
  tenant: string,
  lines: AsyncIterable<string>,
  options: ImportOptions,
): Promise<ImportReport> {
  const intake = new Intake(deps, tenant);
  const skills: ToldSkill[] = [];
  let isBegun = false;
  for await (const text of lines) {
    options.signal?.throwIfAborted();
    intake.lines += 1;
    if (text.trim() === '') continue;
    if (!isBegun) {
      readHeader(text.replace(/^\uFEFF/, ''));
      isBegun = true;
      continue;
    }
    const line = options.reasonAgainst?.(text) ?? (await readLine(text));
    const read = typeof line === 'string' ? line : readRecord(deps, tenant, line);
    if (typeof read === 'string') intake.refuse(intake.lines, read);
    else if (options.proposeSkill !== undefined && read.kind === 'skill')
      skills.push({ line: intake.lines, told: parseBody<Skill>(read).value });
    else await intake.take(read);
    // Reading a line is synchronous, so other work gets its turn between lines.
    await letOthers();
  }
  if (!isBegun)
    throw new EtudeError('INVALID_ARGUMENT', 'there is nothing to import: the first line has to be the header of an export', {
      field: 'lines',
    });
  await intake.flush();
  if (options.proposeSkill !== undefined) await intake.proposeAll(skills, options.proposeSkill, options.signal);
  return intake.report();
}

/** Writes records in batches and counts the outcomes. */
class Intake {
  lines = 0;
  readonly #deps: UpkeepDeps;
  readonly #tenant: string;
  readonly #counts = { added: 0, unchanged: 0 };
  readonly #refused: Array<{ line: number; reason: string }> = [];
  #batch: Numbered[] = [];
  #chars = 0;

  constructor(deps: UpkeepDeps, tenant: string) {
    this.#deps = deps;
    this.#tenant = tenant;
  }

  /** Adds a record to the batch, which is written once it is full. */
  async take(record: MemoryRecord): Promise<void> {
    this.#batch.push({ line: this.lines, record });
    this.#chars += record.body.length;
    if (this.#batch.length === BATCH_RECORDS || this.#chars >= BATCH_CHARS) await this.flush();
  }

  async flush(): Promise<void> {
    const batch = this.#batch;
    [this.#batch, this.#chars] = [[], 0];
    if (batch.length > 0) await this.#insert(batch);
  }

  async proposeAll(skills: readonly ToldSkill[], propose: ProposeSkill, signal?: AbortSignal): Promise<void> {
    const source = importOf(skills);
    for (const { line, told, isToldElsewhere } of inOrder(skills)) {
      signal?.throwIfAborted();
      if (isToldElsewhere) this.#counts.unchanged += 1;
      else await this.#unlessRefused(line, async () => (this.#counts[await propose(proposalOf(told, source))] += 1));
    }
  }

  refuse(line: number, reason: string): void {
    if (this.#refused.length < REFUSED_MAX) this.#refused.push({ line, reason });
  }

  report(): ImportReport {
    return { lines: this.lines, ...this.#counts, refused: this.#refused };
  }

  /** If one record is refused, for example because its user was erased, each record is tried alone. */
  async #insert(batch: readonly Numbered[]): Promise<void> {
    const [only] = batch;
    if (batch.length === 1 && only !== undefined) return this.#unlessRefused(only.line, () => this.#write(batch));
    try {
      await this.#write(batch);
    } catch (error) {
      if (!isOfOneRecord(error)) throw error;
      for (const one of batch) await this.#insert([one]);
    }
  }

  async #write(batch: readonly Numbered[]): Promise<void> {
    const { store, embedder } = this.#deps;
    const records = batch.map(({ record }) => record);
    const done = await store.write(this.#tenant, await insertsOf(embedder, records));
    for (const [i, one] of batch.entries()) {
      if (done[i] === true) this.#counts.added += 1;
      else await this.#compare(one);
    }
  }

  /** Compares an existing record with the line. Counts that changed since the export don't matter. */
  async #compare({ line, record }: Numbered): Promise<void> {
    const { layer, kind, key, text, scope, fields } = record;
    const [known] = await this.#deps.store.load({ tenant: this.#tenant, agent: null }, layer, kind, [key]);
    const isOneOwner = known?.scope.agent === scope.agent && known.scope.user === scope.user;
    if (isOneOwner && known.text === text && known.fields.digest === fields.digest) this.#counts.unchanged += 1;
    else this.refuse(line, `a ${kind} with this key is stored with other content, and was not changed`);
  }

  async #unlessRefused(line: number, work: () => Promise<unknown>): Promise<void> {
    try {
      await work();
    } catch (error) {
      if (!isOfOneRecord(error)) throw error;
      this.refuse(line, error.message);
    }
  }
}

function isOfOneRecord(error: unknown): error is Error {
  return error instanceof Error && (isErased(error) || OF_ONE_RECORD.has(errorCode(error)));
}

import { insertsOf } from '../layers/indexed-texts.js';
import type { ImportReport, Progress } from '../memory.js';
import type { MemoryRecord, RecordStore } from '../record-store.js';
import { isErased } from './erasure-marks.js';
import { type ExportLine, LINE_BYTES_MAX, readHeader, readLine, UNPACKED_BYTES_MAX } from './export-lines.js';
import { areToldAlike, readRecord } from './imported-record.js';
import { importOf, inOrder, proposalOf, type ProposeSkill, type ToldSkill, toldSkill, tooLarge } from './imported-skill.js';
import { errorCode, EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { Clock } from '@etude/domain/ports/clock';
import type { Embedder } from '@etude/domain/ports/embedder';
import type { ProofChecker } from '@etude/domain/ports/proof-signer';
import { setImmediate as letOthers } from 'node:timers/promises';

export interface ImportDeps {
  readonly store: RecordStore;
  readonly embedder: Embedder;
  readonly clock: Clock;
  readonly proofChecker?: ProofChecker;
}

export interface ImportOptions {
  readonly onProgress?: (progress: Progress) => void;
  readonly signal?: AbortSignal;
  /**
   * Takes the skills as candidates, once all lines were read: the import isn't believed that they were verified or approved. Absent: they
   * are stored as they are.
   */
  readonly proposeSkill?: ProposeSkill;
  /** What packed lines may unpack to, together. Absent: only each of them is bounded. */
  readonly unpackedBytesMax?: number;
}

/** Of one request to a service: its other callers wait for what is unpacked and stored. */
export const REQUEST_LINES_MAX = 20_000;
export const REQUEST_UNPACKED_BYTES_MAX = UNPACKED_BYTES_MAX;

interface Numbered {
  readonly line: number;
  readonly record: MemoryRecord;
}

const NOT_REGISTERED: ReadonlySet<string> = new Set(['PERMISSION_DENIED', 'FAILED_PRECONDITION', 'INVALID_ARGUMENT']);

/** What became of a skill, or why it may not be registered. @throws whatever else fails */
async function outcomeOf(
  told: Skill,
  source: string,
  propose: ProposeSkill,
): Promise<'added' | 'unchanged' | { readonly refused: string }> {
  const refused = tooLarge(told);
  if (refused !== null) return { refused };
  try {
    return await propose(proposalOf(told, source));
  } catch (error) {
    const isRefusal = NOT_REGISTERED.has(errorCode(error) ?? '') || isErased(error);
    if (!isRefusal || !(error instanceof Error)) throw error;
    return { refused: error.message };
  }
}

/** Records that are embedded and written at once, or one where that has more characters. */
const BATCH_RECORDS = 128;
const BATCH_CHARS = 2_000_000;
const REFUSED_MAX = 100;

/**
 * Takes in the lines of an export. Each record is inserted under its key, so that lines that were taken in before change nothing, and
 * an import that was cut off is done again from the start. A record that is there stays as it is,
 * and is refused where it was told something else.
 *
 * @throws EtudeError INVALID_ARGUMENT or FAILED_PRECONDITION for a wrong header, before anything is written; PAYLOAD_TOO_LARGE beyond
 *   `unpackedBytesMax`. Whatever ends it later, what was taken in until then stays
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
    await letOthers();
  }
  return intake.end();
}

class Intake {
  #lines = 0;
  #added = 0;
  #unchanged = 0;
  #isBegun = false;
  #chars = 0;
  #unpacked = 0;
  #batch: Numbered[] = [];
  readonly #skills: ToldSkill[] = [];
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
    const read = await this.#read(text);
    if ('refused' in read) return this.#refuse(this.#lines, read.refused);
    await letOthers();
    await this.#takeRecord(read.line, read.chars);
  }

  async #read(text: string): ReturnType<typeof readLine> {
    const left = (this.#options.unpackedBytesMax ?? Infinity) - this.#unpacked;
    const read = await readLine(text, Math.max(1, Math.min(left, UNPACKED_BYTES_MAX)));
    this.#unpacked += read.bytes;
    if (read.bytes <= left || left > UNPACKED_BYTES_MAX) return read;
    throw new EtudeError(
      'PAYLOAD_TOO_LARGE',
      `the packed lines up to line ${this.#lines} unpack to more than ${this.#options.unpackedBytesMax} bytes together; send fewer lines at once, what was taken in before stays`,
      { field: 'lines' },
    );
  }

  async #takeRecord(line: ExportLine, chars: number): Promise<void> {
    const { clock, proofChecker } = this.#deps;
    const read = readRecord({ tenant: this.#tenant, now: clock.now(), ...(proofChecker && { proofChecker }) }, line);
    if ('refused' in read) return this.#refuse(this.#lines, read.refused);
    if (this.#options.proposeSkill !== undefined && read.record.kind === 'skill') {
      this.#skills.push(toldSkill(this.#lines, read.record));
      return;
    }
    this.#batch.push({ line: this.#lines, record: read.record });
    this.#chars += chars;
    if (this.#batch.length >= BATCH_RECORDS || this.#chars >= BATCH_CHARS) await this.#flush();
  }

  async end(): Promise<ImportReport> {
    if (!this.#isBegun)
      throw new EtudeError('INVALID_ARGUMENT', 'there is nothing to import: the first line has to be the header of an export', {
        field: 'lines',
      });
    await this.#flush();
    if (this.#options.proposeSkill !== undefined) await this.#proposeAll(this.#options.proposeSkill);
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

  async #proposeAll(propose: ProposeSkill): Promise<void> {
    const source = importOf(this.#skills);
    for (const { line, told, isToldElsewhere } of inOrder(this.#skills)) {
      this.#options.signal?.throwIfAborted();
      const outcome = isToldElsewhere ? 'unchanged' : await outcomeOf(told, source, propose);
      if (outcome === 'added') this.#added += 1;
      else if (outcome === 'unchanged') this.#unchanged += 1;
      else this.#refuse(line, outcome.refused);
    }
  }

  async #compare(numbered: Numbered): Promise<void> {
    const { layer, kind, key } = numbered.record;
    const [known] = await this.#deps.store.load({ tenant: this.#tenant, agent: null }, layer, kind, [key]);
    if (known !== undefined && areToldAlike(known, numbered.record)) this.#unchanged += 1;
    else this.#refuse(numbered.line, `a ${kind} of its key is there with other content; it was left as it is`);
  }

  #refuse(line: number, reason: string): void {
    if (this.#refused.length < REFUSED_MAX) this.#refused.push({ line, reason });
  }
}

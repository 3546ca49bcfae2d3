import { insertsOf, parseBody } from '../layers/records.js';
import type { ImportReport } from '../memory.js';
import type { MemoryRecord } from '../record-store.js';
import { isErased } from './erasure-marks.js';
import { readHeader, readLine } from './export-lines.js';
import { importOf, inOrder, proposalOf, type ProposeSkill, readRecord, type ToldSkill } from './imported-record.js';
import type { UpkeepDeps } from './record-upkeep.js';
import { errorCode, EtudeError } from '@etude/contracts/errors';
import { batchesOf } from '@etude/contracts/wire/batches';
import type { Skill } from '@etude/contracts/memory';
import { setImmediate as letOthers } from 'node:timers/promises';

export interface ImportOptions {
  readonly signal?: AbortSignal;
  /**
   * Registers the skills as candidates after all lines were read, because the import's claims of verification and approval aren't trusted.
   * Absent: skills are stored as they are.
   */
  readonly proposeSkill?: ProposeSkill;
  /** Returns the reason why a line is refused; null if its text is accepted. */
  readonly reasonAgainst?: (line: string) => string | null;
}

export const REQUEST_LINES_MAX = 20_000;

interface Numbered {
  readonly line: number;
  readonly record: MemoryRecord;
}

interface Intake {
  readonly deps: UpkeepDeps;
  readonly tenant: string;
  readonly told: { lines: number; added: number; unchanged: number; readonly refused: Array<{ line: number; reason: string }> };
}

/** Limits of a batch that is embedded and written at once: records, and characters of their bodies. */
const BATCH = { itemsMax: 128, sizeMax: 2_000_000 };
const REFUSED_MAX = 100;
/** Error codes that concern one record. Any other error ends the import. */
const OF_ONE_RECORD: ReadonlySet<string> = new Set(['PERMISSION_DENIED', 'FAILED_PRECONDITION', 'INVALID_ARGUMENT']);

/**
 * Imports lines of `exportRecords`, from any adapter and tenant, into `tenant`. Records are inserted under their keys, so importing the
 * same lines again changes nothing. An existing record stays as it is; a line that differs from it is refused.
 *
 * @throws EtudeError INVALID_ARGUMENT or FAILED_PRECONDITION for a wrong header. After a failure, records imported before stay
 */
export async function importRecords(
  deps: UpkeepDeps,
  tenant: string,
  lines: AsyncIterable<string>,
  options: ImportOptions,
): Promise<ImportReport> {
  const intake: Intake = { deps, tenant, told: { lines: 0, added: 0, unchanged: 0, refused: [] } };
  const skills: ToldSkill[] = [];
  const records = recordsIn(intake, lines, options, skills);
  for await (const batch of batchesOf(records, BATCH, ({ record }) => record.body.length)) await insert(intake, batch);
  await proposeAll(intake, skills, options);
  return intake.told;
}

/** The records to insert. Refuses other lines. Skills that will be proposed go to `skills`. */
async function* recordsIn(
  { deps, tenant, told }: Intake,
  lines: AsyncIterable<string>,
  { signal, reasonAgainst, proposeSkill }: ImportOptions,
  skills: ToldSkill[],
): AsyncGenerator<Numbered> {
  let isBegun = false;
  for await (const text of lines) {
    signal?.throwIfAborted();
    told.lines += 1;
    if (text.trim() === '') continue;
    if (!isBegun) {
      readHeader(text.replace(/^\uFEFF/, ''));
      isBegun = true;
      continue;
    }
    const line = reasonAgainst?.(text) ?? (await readLine(text));
    const record = typeof line === 'string' ? line : readRecord(deps, tenant, line);
    if (typeof record === 'string') refuse(told, told.lines, record);
    else if (proposeSkill === undefined || record.kind !== 'skill') yield { line: told.lines, record };
    else skills.push({ line: told.lines, told: parseBody<Skill>(record).value });
    // Reading a line is synchronous, so other work gets its turn between lines.
    await letOthers();
  }
  if (!isBegun)
    throw new EtudeError('INVALID_ARGUMENT', 'there is nothing to import: the first line has to be the header of an export', {
      field: 'lines',
    });
}

async function proposeAll({ told }: Intake, skills: readonly ToldSkill[], { proposeSkill, signal }: ImportOptions): Promise<void> {
  if (proposeSkill === undefined) return;
  const source = importOf(skills);
  for (const { line, told: skill, isToldElsewhere } of inOrder(skills)) {
    signal?.throwIfAborted();
    try {
      told[isToldElsewhere ? 'unchanged' : await proposeSkill(proposalOf(skill, source))] += 1;
    } catch (error) {
      if (!isOfOneRecord(error)) throw error;
      refuse(told, line, error.message);
    }
  }
}

function refuse({ refused }: Intake['told'], line: number, reason: string): void {
  if (refused.length < REFUSED_MAX) refused.push({ line, reason });
}

/** If one record is refused, for example because its user was erased, each record is tried alone. */
async function insert(intake: Intake, batch: readonly Numbered[]): Promise<void> {
  try {
    await write(intake, batch);
  } catch (error) {
    if (!isOfOneRecord(error)) throw error;
    if (batch.length > 1) for (const one of batch) await insert(intake, [one]);
    else refuse(intake.told, batch[0]!.line, error.message);
  }
}

async function write(intake: Intake, batch: readonly Numbered[]): Promise<void> {
  const { store, embedder } = intake.deps;
  const records = batch.map(({ record }) => record);
  const done = await store.write(intake.tenant, await insertsOf(embedder, records));
  for (const [i, one] of batch.entries()) {
    if (done[i] === true) intake.told.added += 1;
    else await compare(intake, one);
  }
}

/** Compares an existing record with the line. Counts that changed since the export don't matter. */
async function compare({ deps, tenant, told }: Intake, { line, record }: Numbered): Promise<void> {
  const { layer, kind, key, text, scope, fields } = record;
  const [known] = await deps.store.load({ tenant, agent: null }, layer, kind, [key]);
  const isOneOwner = known?.scope.agent === scope.agent && known.scope.user === scope.user;
  if (isOneOwner && known.text === text && known.fields.digest === fields.digest) told.unchanged += 1;
  else refuse(told, line, `a ${kind} with this key is stored with other content, and was not changed`);
}

function isOfOneRecord(error: unknown): error is Error {
  return error instanceof Error && (isErased(error) || OF_ONE_RECORD.has(errorCode(error)));
}

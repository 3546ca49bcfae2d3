import { isDeeper } from '@etude/contracts/json';
import type { Skill } from '@etude/contracts/memory';
import type { ProofChecker } from '@etude/domain/ports/proof-signer';
import { isDeepStrictEqual } from 'node:util';
import { type MemoryRecord, RECORD_KINDS, RECORD_TEXTS_MAX, type RecordKind } from '../../record-store.js';
import { indexedTextsOf } from '../record-texts.js';
import { skillRecord } from '../skill-records.js';
import type { StoredBody } from '../stored-body.js';
import { type ExportLine, parseJson, reasonOf } from './line-format.js';
import { unprovenAsCandidate, withOwnPins } from './imported-skill.js';
import { type Rebuilt, rebuiltRecord } from './rebuilt-record.js';
import { storedBodyOf, wrongNumber } from './stored-values.js';

/** Whose the record becomes, and when: ms since 1970. */
export interface Reader {
  readonly tenant: string;
  readonly now: number;
  readonly proofChecker?: ProofChecker;
}

/** Found by more than one text each. */
const MANY_TEXTS: readonly RecordKind[] = ['fact', 'skill'];

/** As deep as Python reads JSON. Whoever reads a record calls itself for each level. */
const NESTING_MAX = 1_000;

interface Owned {
  readonly scope?: MemoryRecord['scope'];
}

/**
 * A line as a record of the reader's tenant, whosever it was. Nothing in it is trusted: the body has to be one of its kind, of the
 * agent and user that the line says, and all else what the layers make of it.
 *
 * @returns why not, where it is none
 */
export function readRecord({ tenant, now, proofChecker }: Reader, line: ExportLine): Rebuilt {
  const kinds: readonly RecordKind[] = RECORD_KINDS[line.layer];
  if (!kinds.includes(line.kind)) return { refused: `kind: ${line.kind} is no kind of the ${line.layer} layer` };
  const raw = parseJson(line.body);
  if (isDeeper(raw, NESTING_MAX)) return { refused: 'body: is nested too deep' };
  const parsed = storedBodyOf(line.kind).safeParse(raw);
  if (!parsed.success) return { refused: `body.${reasonOf(parsed.error)}` };
  const { value, taken = [] } = parsed.data as { value: Owned; taken?: readonly string[] };
  const wrong = wrongNumber({ createdAt: line.createdAt }, now) ?? wrongNumber({ ...value }, now);
  if (wrong !== null) return { refused: wrong };
  const { agent, user } = line;
  if (value.scope !== undefined && (value.scope.agent !== agent || value.scope.user !== user))
    return { refused: 'body.value.scope: is of another agent or user than the line' };
  const scope = { tenant, agent, user };
  const scoped = value.scope === undefined ? value : { ...value, scope };
  const own = line.kind === 'skill' ? withOwnPins(scoped as Skill, tenant) : scoped;
  const made = rebuiltRecord({ line, scope, body: { value: own, taken } as StoredBody<never> });
  if ('refused' in made) return made;
  if (MANY_TEXTS.includes(line.kind) && indexedTextsOf(made.record).length > RECORD_TEXTS_MAX)
    return { refused: `body: is found by more than ${RECORD_TEXTS_MAX} texts` };
  const unproven = line.kind === 'skill' ? unprovenAsCandidate(own as Skill, now, proofChecker) : null;
  if (unproven !== null) return { record: skillRecord(unproven, taken) };
  // Byte for byte where it says nothing else.
  const isAsSaid = isDeepStrictEqual(raw, taken.length === 0 ? { value: own } : { value: own, taken });
  return isAsSaid ? { record: { ...made.record, body: line.body } } : made;
}

import { EtudeError } from '@etude/contracts/errors';
import type { Json } from '@etude/contracts/json';
import type { Skill } from '@etude/contracts/memory';
import type { SkillContract } from '@etude/contracts/skill-proof';
import { z } from 'zod';
import { nothingToCall } from '../life/call-graph.js';
import type { SandboxRun } from '@etude/contracts/sandbox';

type Arguments = Readonly<Record<string, unknown>>;
/**
 * Checks arguments against the skill's contract and returns the given arguments. Default values are left to Python, because JSON may lack their exact
 * values (a tuple, 1.0).
 *
 * @throws EtudeError INVALID_ARGUMENT, which lists each wrong argument as "parameters.NAME"; FAILED_PRECONDITION if the skill can't be called
 */
export function validateArguments(skill: Pick<Skill, 'name' | 'kind' | 'entryPoint' | 'contract'>, given: Arguments): Arguments {
  const contract = requireContract(skill);
  const own = ownArguments(given);
  const parsed = z.fromJSONSchema(contract.inputSchema).safeParse(own);
  if (parsed.success) return own;
  const violations = parsed.error.issues.flatMap((issue) => violationsOf(issue, own, contract));
  const lines = violations.map(({ field, description }) => `${field} ${description.replace(/\.+$/, '')}`).join('; ');
  throw new EtudeError('INVALID_ARGUMENT', `The arguments of ${skill.name} are wrong: ${lines}. The signature is ${contract.signature}.`, {
    field: violations[0]?.field,
    violations,
  });
}

/** The arguments without undefined values, in an object that inherits no names such as "constructor". */
function ownArguments(given: Arguments): Record<string, unknown> {
  const own = Object.create(null) as Record<string, unknown>;
  for (const [name, value] of Object.entries(given)) if (value !== undefined) own[name] = value;
  return own;
}

/** Requires a skill that can be called. @throws EtudeError FAILED_PRECONDITION, which says what to do instead */
export function requireCallable(skill: Pick<Skill, 'name' | 'kind' | 'entryPoint'>): void {
  if (skill.kind !== 'function') throw new EtudeError('FAILED_PRECONDITION', `${skill.name} ${nothingToCall(skill)}.`);
}

function requireContract(skill: Pick<Skill, 'name' | 'kind' | 'entryPoint' | 'contract'>): SkillContract {
  requireCallable(skill);
  if (skill.contract !== undefined) return skill.contract;
  throw new EtudeError('FAILED_PRECONDITION', `The parameters of ${skill.name} are unknown; verify it again to read them from its code.`);
}

function violationsOf(issue: z.core.$ZodIssue, given: Arguments, { parameters }: SkillContract) {
  if (issue.code === 'unrecognized_keys' && issue.path.length === 0) {
    const known = parameters.map(({ name }) => name).join(', ');
    return issue.keys.map((name) => ({ field: `parameters.${name}`, description: `is not known; known are ${known || 'no arguments'}` }));
  }
  const [name] = issue.path;
  const field = ['parameters', ...issue.path].join('.');
  if (issue.path.length > 1 || typeof name !== 'string' || Object.hasOwn(given, name))
    return [{ field, description: `is wrong: ${faultOf(issue)}` }];
  const { type = '', description = '' } = parameters.find((parameter) => parameter.name === name) ?? {};
  return [{ field, description: `is missing${type && ` (${type})`}${description && `: ${description.slice(0, 200)}`}` }];
}

function faultOf(issue: z.core.$ZodIssue): string {
  const faults = issue.code === 'invalid_union' ? issue.errors.flatMap((errors) => errors.slice(0, 1)) : [issue];
  return [...new Set(faults.map(({ message }) => message.replace(/^Invalid input: /, '')))].join('; or ');
}

type Call = Extract<SandboxRun, { kind: 'call' }>;

/**
 * Turns arguments given by name into the arguments of a Python call. A parameter before "/" is passed by position, as is each parameter before
 * `*rest`, whose list follows. All other parameters are passed by name. An omitted parameter keeps the function's default.
 *
 * @param given the result of `validateArguments`
 * @throws EtudeError INVALID_ARGUMENT if a parameter is omitted that comes before a parameter passed by position
 */
export function placedArguments(
  { name, contract }: Pick<Skill, 'name' | 'contract'>,
  given: Readonly<Record<string, unknown>>,
): Pick<Call, 'args' | 'kwargs'> {
  const kwargs = { ...given } as Call['kwargs'];
  const parameters = contract?.parameters ?? [];
  const rest = parameters.find(({ passed }) => passed === 'rest');
  const follow = rest === undefined ? undefined : kwargs[rest.name];
  if (rest !== undefined) delete kwargs[rest.name];
  const behind = Array.isArray(follow) ? follow : [];
  const last = behind.length > 0 ? rest : parameters.findLast((one) => one.passed === 'position' && Object.hasOwn(kwargs, one.name));
  if (last === undefined) return { args: [], kwargs };
  const places = parameters.slice(0, parameters.indexOf(last) + (last === rest ? 0 : 1));
  const leftOut = places.find((place) => !Object.hasOwn(kwargs, place.name));
  if (leftOut !== undefined) {
    const field = `parameters.${leftOut.name}`;
    const message = `The arguments of ${name} are wrong: ${field} is missing. Give it too, because the later ${last.name} is passed by position.`;
    throw new EtudeError('INVALID_ARGUMENT', message, { field });
  }
  const args = places.map((place) => kwargs[place.name]!);
  for (const place of places) delete kwargs[place.name];
  return { args: [...args, ...behind], kwargs };
}

/** The escape of a lone surrogate in JSON. `JSON.stringify` escapes no other characters this way. A backslash in the text would be doubled. */
const LONE = /(?<!\\)((?:\\\\)*)\\u(?=d[89a-f])/g;

/** The value of a call, with lone surrogates as Python's escapes, such as "\ud800", because UTF-8 can't hold lone surrogates. */
export const validUnicode = (value: Json): Json => JSON.parse(JSON.stringify(value).replaceAll(LONE, String.raw`$1\\u`)) as Json;

/**
 * The return value of a call as plain JSON, as a skill's `outputSchema` describes it. Sets become lists, complex numbers pairs, and bytes base64. A
 * dictionary with keys other than texts becomes a list of pairs. Numbers that JSON lacks become texts. Lone surrogates are escaped.
 */
export const plainValue = (value: Json): unknown => plain(validUnicode(value));

/** In `RunResult.value`, keys that begin with "$" are always the sandbox's own. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== 'object') return value;
  const entries = Object.entries(value);
  const [key, content] = entries[0] ?? [];
  if (key === '$dict' && isTexted(content)) return objectOf(content);
  if (key?.startsWith('$') && entries.length === 1) return plain(content);
  return objectOf(entries);
}

const objectOf = (pairs: ReadonlyArray<readonly [string, unknown]>) => Object.fromEntries(pairs.map(([name, item]) => [name, plain(item)]));

/** Whether all keys are texts. Then the sandbox wrote pairs only because a key begins with "$". */
function isTexted(pairs: unknown): pairs is ReadonlyArray<readonly [string, unknown]> {
  return Array.isArray(pairs) && pairs.every((pair) => Array.isArray(pair) && typeof pair[0] === 'string');
}

const CHANGED = /\{"\$(?:int|float)":|\\ud[89a-f]/;
const NOTE =
  'In the result whole numbers beyond 2^53, nan and infinities are texts, and halves of surrogate pairs are escapes such as \\ud800.';

/** A note on the numbers and texts that `plainValue` changes. Empty if this value has none of them. */
export const noteOfPlainValue = (value: unknown): string => (CHANGED.test(JSON.stringify(value) ?? '') ? NOTE : '');

import { EtudeError } from '@etude/contracts/errors';
import type { Skill } from '@etude/contracts/memory';
import type { SandboxRun } from '@etude/contracts/sandbox';

type CallArguments = Pick<Extract<SandboxRun, { kind: 'call' }>, 'args' | 'kwargs'>;
type Value = CallArguments['args'][number];

/**
 * Arguments that were given by name, as Python takes them: what stands before a "/" by its place, the list of what follows a "*" behind all
 * that stands before it, the rest by name. A default is filled in only where a place before another needs a value.
 *
 * @param given as `validateArguments` answers them
 * @throws EtudeError INVALID_ARGUMENT where one was left out that stands before another which is passed by its place
 */
export function placedArguments(
  { name: skill, contract }: Pick<Skill, 'name' | 'contract'>,
  given: Readonly<Record<string, unknown>>,
): CallArguments {
  const kwargs = { ...given } as CallArguments['kwargs'];
  const parameters = contract?.parameters ?? [];
  const rest = parameters.find(({ passed }) => passed === 'rest');
  const follow = rest === undefined || !Object.hasOwn(kwargs, rest.name) ? [] : listOf(kwargs[rest.name]);
  if (rest !== undefined) delete kwargs[rest.name];
  const last = follow.length > 0 ? rest : parameters.findLast(({ name, passed }) => passed === 'position' && Object.hasOwn(kwargs, name));
  if (last === undefined) return { args: [], kwargs };
  const before = parameters.slice(0, parameters.indexOf(last) + (last === rest ? 0 : 1));
  const args = before.map(({ name }) => {
    const value = Object.hasOwn(kwargs, name) ? kwargs[name] : defaultOf(contract, name);
    if (value === undefined) throw leftOut(skill, name, last.name);
    delete kwargs[name];
    return value;
  });
  return { args: [...args, ...follow], kwargs };
}

function defaultOf(contract: Skill['contract'], name: string): Value | undefined {
  const properties = objectOf(contract?.inputSchema.properties);
  return Object.hasOwn(properties, name) ? objectOf(properties[name]).default : undefined;
}

const objectOf = (value: Value | undefined) =>
  typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Readonly<Record<string, Value>>) : {};
const listOf = (value: unknown) => (Array.isArray(value) ? (value as Value[]) : []);

/** Its default is none that JSON has, so that nobody but Python can fill it in. */
function leftOut(skill: string, name: string, last: string): EtudeError {
  const description = `is needed too: ${last} stands behind it and is passed by its place`;
  return new EtudeError('INVALID_ARGUMENT', `The arguments of ${skill} are wrong: parameters.${name} ${description}.`, {
    field: `parameters.${name}`,
    violations: [{ field: `parameters.${name}`, description }],
  });
}

import type { Skill } from '@etude/contracts/memory';
import type { SandboxRun } from '@etude/contracts/sandbox';
import { pythonCall, pythonText } from '../../python-files.js';

type Call = Extract<SandboxRun, { kind: 'call' }>;
type Value = Call['args'][number];

/**
 * A call of the function with arguments that were given by name, as Python takes them: what stands before a "/" by its place, the list of
 * what follows a "*" behind all that stands before it, the rest by name. What was left out before another has the function's own default:
 * JSON has none that is a tuple, or 1.0.
 *
 * @param code that defines it
 * @param given as `validateArguments` answers them
 */
export function placedCall(
  { contract, entryPoint }: Pick<Skill, 'contract'> & { readonly entryPoint: string },
  code: string,
  given: Readonly<Record<string, unknown>>,
): Pick<Call, 'code' | 'entryPoint' | 'args' | 'kwargs'> {
  const kwargs = { ...given } as Call['kwargs'];
  const parameters = contract?.parameters ?? [];
  const rest = parameters.find(({ passed }) => passed === 'rest');
  const follow = rest === undefined || !Object.hasOwn(kwargs, rest.name) ? [] : listOf(kwargs[rest.name]);
  if (rest !== undefined) delete kwargs[rest.name];
  const last = follow.length > 0 ? rest : parameters.findLast(({ name, passed }) => passed === 'position' && Object.hasOwn(kwargs, name));
  if (last === undefined) return { code, entryPoint, args: [], kwargs };
  const before = parameters.slice(0, parameters.indexOf(last) + (last === rest ? 0 : 1));
  const places = before.map(({ name }) => {
    const value = Object.hasOwn(kwargs, name) ? [kwargs[name]!] : [];
    delete kwargs[name];
    return value;
  });
  if (places.every((place) => place.length === 1)) return { code, entryPoint, args: [...places.flat(), ...follow], kwargs };
  const placing = pythonCall(PLACING, 'placing', [entryPoint]);
  return { code: `${code}\n\n${PLACED} = ${placing}\n`, entryPoint: PLACED, args: [places, follow], kwargs };
}

const PLACED = '__etude_placed__';
const PLACING = pythonText('place_arguments');

const listOf = (value: unknown) => (Array.isArray(value) ? (value as Value[]) : []);

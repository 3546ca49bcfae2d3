import type { Skill } from '@etude/contracts/memory';
import type { SandboxRun } from '@etude/contracts/sandbox';

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
  return { code: `${code}\n\n${placing(entryPoint)}`, entryPoint: PLACED, args: [places, follow], kwargs };
}

const PLACED = '__etude_placed__';

/**
 * Of each place a list of the value that was given, or of none. Only Python knows what a default is. Why not `inspect`: it evaluates
 * annotations, which need not name anything.
 */
const placing = (entryPoint: string) => `def ${PLACED}(places, follow, /, **named):
    function = ${entryPoint}
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    defaults = dict(zip(names[::-1], (function.__defaults__ or ())[::-1]))
    left_out = [at for at, given in enumerate(places) if not given]
    if any(at >= len(names) or names[at] not in defaults for at in left_out):
        raise TypeError("what was left out has no default; give it, or use functools.wraps in the decorator of ${entryPoint}")
    placed = [given[0] if given else defaults[names[at]] for at, given in enumerate(places)]
    return ${entryPoint}(*placed, *follow, **named)
`;

const listOf = (value: unknown) => (Array.isArray(value) ? (value as Value[]) : []);

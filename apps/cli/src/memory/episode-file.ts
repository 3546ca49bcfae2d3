import { type Json, JsonObject, parseExactJson } from '@etude/contracts/json';
import { z } from 'zod';
import { CliError } from '../cli-error.js';
import { EXIT } from '../exit-codes.js';

const HINT = [
  'it looks like {"context": ["…"], "actions": ["…"], "outcomes": [{"type": "…"}], "reflection": "…", "importance": 0.5}',
  '@FILE reads it from a file, - from stdin',
];

const nounOf = (value: unknown): string => {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'a list';
  return { string: 'text', number: 'a number', boolean: 'true or false' }[typeof value as string] ?? 'an object';
};

/** In the words of who wrote the file: what it must be, and what it is. */
const must = (be: string) => ({
  error: ({ input }: { readonly input?: unknown }) =>
    input === undefined ? `is missing; it must be ${be}` : `must be ${be}; it is ${nounOf(input)}`,
});

const texts = () => z.array(z.string(must('text')), must('a list of texts, such as ["fog in the channel"]'));

/** In the names of the wire. */
const EpisodeFile = z.looseObject(
  {
    context: texts(),
    actions: texts().default([]),
    outcomes: z
      .array(
        z.custom<Record<string, Json>>((value) => JsonObject.safeParse(value).success, must('an object, such as {"type": "passed"}')),
        must('a list of objects, such as [{"type": "passed"}]'),
      )
      .default([]),
    skills_used: texts().default([]),
    reflection: z.string(must('text')).default(''),
    importance: z.number(must('a number from 0 to 1')).optional(),
  },
  must('an object'),
);
type EpisodeFile = z.infer<typeof EpisodeFile>;

/** @throws CliError usage, with each thing that is wrong and where it stands */
export function readEpisode(text: string): EpisodeFile {
  const json = parsed(text);
  const { data, error } = EpisodeFile.safeParse(json);
  const names = Object.keys(EpisodeFile.shape);
  const unknown = Object.keys(data ?? (isObject(json) ? json : {})).filter((name) => !names.includes(name));
  const wrong = [
    ...unknown.map((name) => `${JSON.stringify(name)} is no part of an episode; its parts are ${names.join(', ')}`),
    ...(error?.issues ?? []).map(({ path, message }) => `${placeOf(path)} ${message}`),
  ];
  if (data !== undefined && wrong.length === 0) return data;
  const [first = '', ...others] = wrong;
  throw new CliError(EXIT.usage, `the episode is wrong: ${first}`, [...others, ...HINT]);
}

function parsed(text: string): unknown {
  try {
    return parseExactJson(text);
  } catch (error) {
    throw new CliError(EXIT.usage, `the episode can't be read as JSON: ${(error as Error).message}`, HINT, { cause: error });
  }
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null && !Array.isArray(value);

/** "outcomes[0]"; the whole of it is "it". */
const placeOf = (path: readonly PropertyKey[]): string =>
  path.length === 0
    ? 'it'
    : path.map((step, at) => (typeof step === 'number' ? `[${step}]` : `${at === 0 ? '' : '.'}${String(step)}`)).join('');

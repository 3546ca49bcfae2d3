/** The fields of a family's problem that the student reads. */
interface Lesson {
  readonly id: string;
  readonly family: string;
  readonly kind: string;
  readonly prompt: string;
  readonly referenceSolution: string;
  readonly evaluator: { readonly functionCases: { readonly entryPoint: string } };
}

export const readLessons = (text: string): Lesson[] =>
  text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => JSON.parse(line) as Lesson);

const RULE = /House rule: ([^\n]+)/g;
const rulesIn = (text: string) => [...text.matchAll(RULE)].map(([, rule = '']) => rule);
const docOf = (code: string) => /"""(.+?)"""/.exec(code)?.[1] ?? '';
const fenced = (code: string) => `This does what the task says.\n\n\`\`\`python\n${code}\`\`\``;
const between = (tag: string, text: string) => new RegExp(`<${tag}>([^]*)</${tag}>`).exec(text)?.[1] ?? '[]';

/** Kinds of requests, each with a text that its prompt contains. */
const ASKED: ReadonlyArray<readonly [kind: string, part: string]> = [
  ['draft', 'Sketch a solution'],
  ['generate', 'Write the solution.'],
  ['critique', 'Criticise the attempts above'],
  ['summary', 'Summarise in at most five sentences'],
  ['reflection', '\nReflect.'],
  ['distil', 'Describe this code for a library'],
  ['wrap', '# Function to use'],
  ['learn', '# Lessons\n'],
];

/** Answers by fixed rules. It keeps nothing between requests. */
export class Student {
  constructor(private readonly lessons: readonly Lesson[]) {}

  /** The answer to a request. null if the student doesn't know the kind of request or the task. */
  answer(system: string, user: string): { readonly kind: string; readonly text: string } | null {
    if (system.startsWith('You extract facts')) return { kind: 'consolidation', text: factsFrom(between('experiences', user)) };
    if (system.startsWith('You generalise Python')) return { kind: 'generalisation', text: '{"code": null}' };
    if (system.startsWith('You keep a list of notes')) return { kind: 'settling', text: verdicts(user) };
    const kind = ASKED.find(([, part]) => user.includes(part))?.[0];
    const task = /# Task\s+<task-[^>]*>\n([^]*?)\n<\/task-/.exec(user)?.[1];
    const lesson = this.lessons.find(({ prompt }) => prompt === task);
    const memories = user.includes('# From earlier work') ? ', with memories' : '';
    return kind && lesson ? { kind: kind + memories, text: this.#say(kind, lesson, user) } : null;
  }

  #say(kind: string, lesson: Lesson, user: string): string {
    const { entryPoint } = lesson.evaluator.functionCases;
    if (kind === 'draft') return `\`${entryPoint}\` does this: ${lesson.prompt}`;
    if (kind === 'wrap') return 'no';
    if (kind === 'critique') return `What \`${entryPoint}\` returned is not what was expected: a rule or an unusual input was missed.`;
    const summary = `\`${entryPoint}\` was asked for. The verdicts of the attempts tell how it went.`;
    if (kind === 'summary') return summary;
    if (kind === 'reflection') return reflection(user);
    const skill = { name: '', description: docOf(user.slice(user.indexOf('# Code that solved it'))), scenarios: [] };
    if (kind === 'distil') return JSON.stringify(skill);
    if (kind === 'learn') return JSON.stringify({ summary, reflection: reflection(user), ...skill });
    if (this.#isRight(lesson, user)) return fenced(lesson.referenceSolution);
    return fenced(`def ${entryPoint}(*given):\n    return None\n`);
  }

  /**
   * Whether the student answers right. A house rule needs its sentence in the prompt. Other tasks are right after a critique, or if the prompt
   * has an earlier task of the family. Otherwise procedures are right in some families, and distractors if no rule of a similar family misleads.
   */
  #isRight(lesson: Lesson, user: string): boolean {
    const { kind, family, referenceSolution } = lesson;
    const critique = user.includes('# Critique');
    if (kind === 'house_rule') return rulesIn(referenceSolution).some((rule) => user.includes(rule));
    if (kind === 'procedure') return critique || family.length % 2 === 1 || this.#remembers(lesson, user);
    const misleads = this.#rulesOfTwin(family).some((rule) => user.includes(rule));
    return critique || !misleads || this.#remembers(lesson, user);
  }

  #remembers({ id, family }: Lesson, user: string): boolean {
    const others = this.lessons.filter((lesson) => lesson.family === family && lesson.id !== id);
    return others.some(({ prompt, referenceSolution }) => user.includes(prompt) || user.includes(docOf(referenceSolution)));
  }

  /** The rules of similar families. Families are similar if their names end in the same word. */
  #rulesOfTwin(family: string): string[] {
    const [word = ''] = family.split('-').slice(-1);
    return this.lessons
      .filter(({ family: other }) => other !== family && other.endsWith(`-${word}`))
      .flatMap((lesson) => rulesIn(lesson.referenceSolution));
  }
}

function reflection(user: string): string {
  const [rule] = rulesIn(/# Reference solution([^]*)/.exec(user)?.[1] ?? '');
  return rule
    ? `The reference keeps to a rule that the task doesn't tell. House rule: ${rule}`
    : 'Keep to the rule that the task tells, and try unusual inputs.';
}

interface Experience {
  readonly accepted: boolean;
  readonly reflection: string | null;
  readonly code: string | null;
}

/** One fact for each house rule in the experiences, and the description of the first accepted code. */
function factsFrom(text: string): string {
  const experiences = JSON.parse(text) as Experience[];
  const told = experiences.map(({ reflection: thought, code }) => rulesIn(`${thought}\n${code}`));
  const facts = [...new Set(told.flat())].map((rule) => ({
    text: rule,
    category: 'house rule',
    subject: `rule: ${rule.split(' ').slice(0, 4).join(' ')}`,
    experiences: told.flatMap((rules, at) => (rules.includes(rule) ? [at] : [])),
  }));
  const code = experiences.find((one) => one.accepted && one.code !== null)?.code;
  const description = docOf(code ?? '');
  return JSON.stringify({ facts, skill: description ? { name: '', description, scenarios: [] } : null });
}

function verdicts(user: string): string {
  const notes = JSON.parse(between('notes', user)) as string[];
  const pairs = JSON.parse(between('pairs', user)) as Array<[number, number]>;
  return JSON.stringify({
    pairs: pairs.map(([a, b]) => ({ verdict: notes[a] === notes[b] ? 'same' : 'differs', reason: 'by their words' })),
  });
}

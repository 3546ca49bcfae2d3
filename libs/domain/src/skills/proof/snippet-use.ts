import type { SkillTest } from '@etude/contracts/memory';

const CHARS_MAX = 400;
const METHOD = /^[ \t]+def[ \t]+([a-z]\w*|__init__|__call__)[ \t]*\(self(?:[ \t]*,[ \t]*)?([^()]*)\)/gm;
const FUNCTION = /^def[ \t]+([a-zA-Z]\w*)[ \t]*\(([^()]*)\)/gm;

/**
 * How code that is shown and not called is used, by its signatures: "Stack(size), then .push(item), .pop()". Of a class, the methods that its
 * tests call, else all public ones. Tests lend no values, since they may be hidden. Empty where that can't be told whole.
 */
export function useOfSnippet(code: string, entryPoint: string | null, tests: readonly SkillTest[]): string {
  const block = entryPoint === null ? undefined : new RegExp(`^class[ \\t]+${entryPoint}\\b[^]*?(?=\\n\\S|$(?![^]))`, 'm').exec(code)?.[0];
  const text =
    block === undefined
      ? callsIn(code, FUNCTION)
          .map(({ call }) => call)
          .join(', ')
      : useOfClass(entryPoint ?? '', block, tests);
  return text.length <= CHARS_MAX ? text : '';
}

function useOfClass(name: string, block: string, tests: readonly SkillTest[]): string {
  const all = callsIn(block, METHOD);
  const made = all.find((method) => method.name === '__init__')?.given ?? '';
  const open = all.filter((method) => method.name !== '__init__');
  const said = JSON.stringify(tests);
  const called = open.filter((method) => said.includes(`.${method.name}(`));
  const then = (called.length > 0 ? called : open).map(({ name: method, given, call }) =>
    method === '__call__' ? `(${given})` : `.${call}`,
  );
  return [`${name}(${made})`, ...(then.length === 0 ? [] : [`then ${then.join(', ')}`])].join(', ');
}

function callsIn(text: string, pattern: RegExp) {
  return [...text.matchAll(pattern)].map(([, name = '', given = '']) => {
    const plain = given.replaceAll(/\s+/g, ' ').trim().replace(/,$/, '');
    return { name, given: plain, call: `${name}(${plain})` };
  });
}

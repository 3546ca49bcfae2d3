import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { filesOfFolder, findSkills, type FolderFile } from '../src/skill-folder/file-collector.js';
import { folderFromSkill, readSkill } from '../src/skill-folder/skill-folder.js';
import type { SkillParts } from '../src/skill-folder/skill-format.js';

const file = (path: string, text: string): FolderFile => ({ path, bytes: Buffer.from(text) });
/** Reads a skill from a folder without a name. */
const skillFromFolder = (files: readonly FolderFile[]): SkillParts => readSkill({ folder: '', files });
const texts = (files: readonly FolderFile[]) =>
  Object.fromEntries(files.map(({ path, bytes }) => [path, Buffer.from(bytes).toString('latin1')]));
const skillText = (fields: string, body = '# Steps\n') => file('SKILL.md', `---\n${fields}\n---\n\n${body}`);

const refusal = (message: RegExp) => expect.objectContaining({ code: 'INVALID_ARGUMENT', message: expect.stringMatching(message) });

const text = fc.string({ unit: 'grapheme', maxLength: 40 });
const name = fc.stringMatching(/^[a-z][a-z0-9_]{0,79}$/);
const json = fc.jsonValue({ maxDepth: 3, noUnicodeString: false }).filter((value) => !JSON.stringify(value).includes('__proto__'));
const optional = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined });

const python = fc.record({ kind: fc.constant('python' as const), setup: text, tests: text });
const call = fc.record({
  kind: fc.constant('call' as const),
  args: fc.array(json, { maxLength: 3 }),
  kwargs: fc.dictionary(fc.stringMatching(/^[a-z]{1,8}$/), json, { maxKeys: 3 }),
  expected: json,
  tolerance: fc.double({ noNaN: true, noDefaultInfinity: true, min: 0, max: 1 }),
});

const parts: fc.Arbitrary<SkillParts> = fc
  .record({
    name,
    kind: fc.constantFrom('function', 'snippet', 'procedure'),
    description: fc.oneof(text, fc.string({ unit: 'grapheme', minLength: 1_000, maxLength: 1_100 })),
    code: fc.string({ unit: 'grapheme', maxLength: 200 }),
    entryPoint: fc.oneof(text, fc.constant(null)),
    tests: fc.array(fc.oneof(python, call), { maxLength: 3 }),
    parameters: fc.array(fc.record({ name: text, type: text, description: text, required: fc.boolean(), defaultValue: optional(json) }), {
      maxLength: 2,
    }),
    hiddenTests: optional(fc.boolean()),
    tags: fc.array(text, { maxLength: 3 }),
    cues: fc.array(text, { maxLength: 2 }),
    sources: fc.array(text, { maxLength: 2 }),
    model: fc.oneof(text, fc.constant(null)),
    scripted: fc.boolean(),
    displayName: optional(text),
    category: optional(fc.constantFrom('text', 'text.csv')),
    examplePrompts: optional(fc.array(text, { maxLength: 2 })),
    packages: optional(fc.constantFrom(['numpy==2.3.1'], [])),
    metadata: optional(
      fc.dictionary(fc.oneof(fc.constantFrom('license', 'compatibility', 'allowed-tools', 'metadata', 'other'), text), json, {
        minKeys: 1,
      }),
    ),
  })
  .map((made) => JSON.parse(JSON.stringify(made)) as SkillParts)
  // Drops values that a folder can't hold, such as texts that UTF-8 can't express.
  .filter((made) => JSON.stringify(made).isWellFormed() && !JSON.stringify(made).includes('__proto__') && !made.code.startsWith('\uFEFF'))
  .map((made) => (made.kind === 'procedure' ? { ...made, code: made.code.replaceAll('\r\n', '\n') } : made));

describe('a skill in a folder', () => {
  it('is read as the same skill that was written', () => {
    fc.assert(
      fc.property(parts, (skill) => {
        const { files = [], ...read } = skillFromFolder(filesOfFolder(folderFromSkill(skill)));
        expect(read).toEqual(skill);
        expect(files.map(({ path }) => path)).toEqual(['SKILL.md']);
      }),
      { numRuns: 100 },
    );
  });

  it('has the files of the Agent Skills format', () => {
    const skill: SkillParts = {
      name: 'parse_csv',
      kind: 'function',
      description: 'Reads CSV.',
      code: 'def parse_csv(text):\n    return text\n',
      entryPoint: 'parse_csv',
      parameters: [],
      tags: ['csv'],
      cues: [],
      sources: [],
      model: null,
      scripted: false,
      category: 'text.csv',
      tests: [{ kind: 'call', args: ['a'], kwargs: {}, expected: 'a', tolerance: 0 }],
      metadata: { license: 'MIT', metadata: { author: 'somebody' } },
    };
    const folder = texts(folderFromSkill(skill));
    expect(Object.keys(folder)).toEqual(['SKILL.md', 'scripts/parse_csv.py', 'tests/cases.json']);
    expect(folder['SKILL.md']).toBe(
      [
        '---\nname: "parse-csv"\ndescription: "Reads CSV."\nlicense: "MIT"\nmetadata:\n  author: "somebody"\n  etude-kind: "function"',
        '  etude-entry-point: "parse_csv"\n  etude-category: "text.csv"\n  etude-tags: "[\\"csv\\"]"\n---\n\n# parse-csv\n\nReads CSV.\n',
        '`scripts/parse_csv.py` defines `parse_csv`.\n',
      ].join('\n'),
    );
  });
});

describe('a folder as a skill', () => {
  const written: FolderFile[] = [
    skillText(
      'name: pdf-tools\ndescription: >-\n  Reads PDFs,\n  and writes them.\nlicense: MIT\nversion: 1.0\nmetadata:\n  author: somebody\n  rev: 2',
    ),
    file('scripts/run.sh', 'echo\n'),
    file('references/deep.md', 'x'),
    { path: 'assets/logo.png', bytes: Uint8Array.from([0, 255, 254, 1]) },
  ];

  it('is a procedure by default', () => {
    const skill = skillFromFolder(written);
    expect(skill).toMatchObject({
      name: 'pdf_tools',
      kind: 'procedure',
      description: 'Reads PDFs, and writes them.',
      code: '# Steps\n',
      entryPoint: null,
      tests: [],
      metadata: { license: 'MIT', version: '1.0', metadata: { author: 'somebody', rev: '2' } },
    });
  });

  it('is a function if its metadata says so, with Python tests', () => {
    const folder = [
      skillText('name: add-up\ndescription: Adds.\nmetadata:\n  etude-kind: function'),
      file('scripts/add_up.py', 'def add_up(a, b):\n    return a + b\n'),
      file('tests/test_add.py', 'assert add_up(1, 2) == 3\n'),
    ];
    const skill = skillFromFolder(folder);
    expect(skill).toMatchObject({
      name: 'add_up',
      kind: 'function',
      tests: [{ kind: 'python', setup: '', tests: 'assert add_up(1, 2) == 3\n' }],
    });
    expect('entryPoint' in skill).toBe(false);
    expect(texts(folderFromSkill(skill))).toEqual(texts(folder));
  });

  const body = fc.string({
    unit: fc.oneof(fc.constantFrom('\n', '\r\n', ' ', '#', '\uFEFF', '---'), fc.string({ unit: 'grapheme', maxLength: 3 })),
    maxLength: 60,
  });
  const extra = fc.record({
    path: fc.stringMatching(/^(references|assets|tests\/test_)[a-z]{1,8}(\.md|\.py)$/),
    bytes: fc.oneof(
      fc.uint8Array({ maxLength: 30 }),
      text.map((value) => new Uint8Array(Buffer.from(value))),
    ),
  });
  const folders = fc
    .record({
      head: fc.constantFrom(
        'name: a-b\ndescription: c',
        'description: "c"\nname: a-b',
        'name: a-b\ndescription: c\nmetadata:\n  etude-kind: function',
      ),
      body,
      code: text,
      cases: optional(fc.constantFrom('[]', '[{"kind":"python","setup":"","tests":"x"}]', '[{"kind":"call","expected":6}]')),
      extras: fc.uniqueArray(extra, { maxLength: 3, selector: ({ path }) => path }),
    })
    .map((made) => [
      file('SKILL.md', `---\n${made.head}\n---\n${made.body}`),
      file('scripts/a_b.py', made.code),
      ...(made.cases ? [file('tests/cases.json', made.cases)] : []),
      ...made.extras.filter(({ path, bytes }) => !path.startsWith('tests/') || Buffer.from(Buffer.from(bytes).toString()).equals(bytes)),
    ]);

  it('may omit default values in a test', () => {
    const cases = [
      { kind: 'call', args: [5], expected: 6 },
      { kind: 'io', expectedStdout: '6' },
      { kind: 'python', tests: 'assert f()' },
    ];
    const folder = [skillText('name: a\ndescription: x'), file('tests/cases.json', JSON.stringify(cases))];
    expect(skillFromFolder(folder).tests).toEqual([
      { kind: 'call', args: [5], kwargs: {}, expected: 6, tolerance: 0 },
      { kind: 'io', stdin: '', expectedStdout: '6', comparison: 'whitespace', tolerance: 0 },
      { kind: 'python', setup: '', tests: 'assert f()' },
    ]);
  });

  it('is written with the same bytes', () => {
    fc.assert(
      fc.property(folders, (files) => {
        expect(texts(folderFromSkill(skillFromFolder(files)))).toEqual(texts(files));
      }),
      { numRuns: 100 },
    );
  });

  it('is written with the same bytes after registration and use', () => {
    const skill = { ...skillFromFolder(written), cues: ['a task'], sources: ['tasks/t'], dependencies: [], entryPoint: null };
    expect(texts(folderFromSkill(skill))).toEqual(texts(written));
  });

  it('gets a new SKILL.md if the skill was changed, and keeps the other files', () => {
    const folder = texts(folderFromSkill({ ...skillFromFolder(written), description: 'Another.' }));
    expect(Object.keys(folder)).toEqual(['SKILL.md', 'assets/logo.png', 'references/deep.md', 'scripts/run.sh']);
    expect(folder['SKILL.md']).toContain('description: "Another."');
    expect(folder['SKILL.md']).toContain('author: "somebody"');
  });
});

describe('a folder is refused with', () => {
  it.each([
    ['no fields', '# Steps', /begin with its fields/],
    ['capitals', '---\nname: Pdf\ndescription: x\n---\n', /"name"/],
    ['a long name', `---\nname: ${'a'.repeat(65)}\ndescription: x\n---\n`, /"name"/],
    ['an empty description', '---\nname: a\ndescription: " "\n---\n', /"description"/],
    ['metadata with lists', '---\nname: a\ndescription: x\nmetadata:\n  a: [b]\n---\n', /"metadata"/],
    ['a key twice', '---\nname: a\nname: b\ndescription: x\n---\n', /not valid YAML/],
    ['a tag', '---\nname: !!js/function a\ndescription: x\n---\n', /not valid YAML/],
    ['an alias', '---\nname: a\ndescription: &x y\nlicense: *x\n---\n', /not valid YAML/],
    [
      'ten thousand names',
      `---\nname: a\ndescription: x\nb: {${Array.from({ length: 10_000 }, (_n, i) => i).join(',')}}\n---\n`,
      /more than 4000/,
    ],
    ['a prototype', '---\nname: a\ndescription: x\n__proto__:\n  b: c\n---\n', /not valid YAML/],
    [
      'fields of a megabyte',
      `---\nname: a\ndescription: x\nb: ${'x'.repeat(900_000)}\n---\n`,
      /have 9000\d\d characters; at most 65536 are allowed/,
    ],
    ['another name inside', '---\nname: a\ndescription: x\nmetadata:\n  etude-name: b\n---\n', /etude-name/],
    ['another description inside', '---\nname: a\ndescription: x\nmetadata:\n  etude-description: y\n---\n', /etude-description/],
    ['an unknown kind', '---\nname: a\ndescription: x\nmetadata:\n  etude-kind: class\n---\n', /etude-kind/],
    ['a function without code', '---\nname: a\ndescription: x\nmetadata:\n  etude-kind: function\n---\n', /scripts\/a\.py/],
    ['a field that is no JSON', '---\nname: a\ndescription: x\nmetadata:\n  etude-tags: "["\n---\n', /etude-tags/],
    ['packages that are none', '---\nname: a\ndescription: x\nmetadata:\n  etude-packages: "[\\"numpy\\"]"\n---\n', /etude-packages/],
  ])('%s', (_, content, message) => {
    expect(() => skillFromFolder([file('SKILL.md', content)])).toThrow(refusal(message));
  });

  it.each([
    ['tests that are not tests', '{"kind": "call"}'],
    ['tests with too deep nesting', `[{"kind":"call","args":[${'['.repeat(20_000)}${']'.repeat(20_000)}],"expected":1}]`],
  ])('%s', (_, cases) => {
    expect(() => skillFromFolder([skillText('name: a\ndescription: x'), file('tests/cases.json', cases)])).toThrow(refusal(/cases\.json/));
  });
});

const skill = (folder: string, called: string) => file(`${folder}SKILL.md`, `---\nname: ${called}\ndescription: x\n---\n`);

describe('folders of skills', () => {
  it('are found at the root and below, each with its own files', () => {
    expect(findSkills([skill('', 'a'), skill('inner/', 'b'), file('x.md', '')]).found.map(({ folder }) => folder)).toEqual(['']);
    const { found, notes } = findSkills([skill('b/', 'b'), skill('a/', 'c'), file('a/x.md', ''), file('README.md', '')]);
    expect(found.map(({ folder, files }) => [folder, files.map(({ path }) => path)])).toEqual([
      ['a', ['SKILL.md', 'x.md']],
      ['b', ['SKILL.md']],
    ]);
    expect(notes).toEqual([expect.stringContaining('README.md was skipped')]);
  });

  it('are named in the error if their SKILL.md cannot be read', () => {
    const { found } = findSkills([skill('a/', 'a'), skill('tools/b/', 'No name')]);
    expect(() => found.map((folder) => readSkill(folder))).toThrow(refusal(/^tools\/b\/SKILL\.md cannot be read: field "name"/));
  });
});

import {
  ListSkillCategoriesResponseSchema,
  ListSkillsResponseSchema,
  SearchSkillsResponseSchema,
  type Skill,
} from '@etude/contracts/gen/etude/v1/skills_pb';
import { useRead } from '../api/client.js';
import { ChoiceFilter, type Column, ReadList, TextFilter } from '../ui/list.js';
import { hrefWith, Link, useQueryValue, useQueryValues } from '../ui/router.js';
import { firstLine, Scripted, When } from '../ui/text.js';
import { NUMBERS, placeOfSkill, scopeWord, skillId, Status } from './skill-words.js';

const STATUSES = [
  ['', 'any'],
  ...['active', 'pending_review', 'candidate', 'verified', 'deprecated', 'rejected', 'archived'].map(
    (word) => [`SKILL_STATUS_${word.toUpperCase()}`, word.replace('_', ' ')] as const,
  ),
] as const;

const COLUMNS: ReadonlyArray<Column<Skill>> = [
  { title: 'Skill', cell: (skill) => <Link to={placeOfSkill(skill)}>{skill.displayName || skillId(skill)}</Link> },
  { title: 'Description', prose: true, cell: ({ description }) => firstLine(description) },
  { title: 'Category', cell: ({ category }) => category && <Link to={hrefWith({ category, page: '' })}>{category}</Link> },
  { title: 'Readers', cell: ({ scope, agent, user }) => [scopeWord(scope), agent, user].filter(Boolean).join(' · ') },
  {
    title: 'Status',
    cell: ({ status, scripted }) => (
      <>
        <Status status={status} /> <Scripted when={scripted} />
      </>
    ),
  },
  { title: 'Version', number: true, cell: ({ version }) => version },
  ...NUMBERS.map(([title, of]) => ({ title, number: true, cell: (skill: Skill) => String(of(skill)) })),
  { title: 'Changed', cell: ({ updateTime }) => <When at={updateTime} /> },
];

export function SkillListPage() {
  const [text] = useQueryValue('q');
  return (
    <>
      <h1>Skills</h1>
      <div className="filters">
        <TextFilter name="q" label="Search by meaning" hint="convert a duration to seconds" isSearch />
        <ChoiceFilter name="status" label="Status" options={STATUSES} />
        <TextFilter name="agent" label="Agent" />
        <TextFilter name="tag" label="Tag" />
      </div>
      {text === '' ? <Library /> : <Found text={text} />}
    </>
  );
}

function Library() {
  const { page, agent, status, category, tag: tags } = useQueryValues('page', 'agent', 'status', 'category', 'tag');
  const read = useRead(ListSkillsResponseSchema, '/v1/skills', { page_size: 50, page_token: page, agent, status, category, tags });
  return (
    <>
      <Categories agent={agent} category={category} />
      <ReadList
        label="skills"
        read={read}
        of={({ skills }) => skills}
        keyOf={placeOfSkill}
        columns={COLUMNS}
        empty={
          <p>
            No skill matches. Skills come from training tasks (<code>--mode training</code>), from <code>./etude skills add</code> and from
            imports.
          </p>
        }
      />
    </>
  );
}

function Categories({ agent, category }: { readonly agent: string; readonly category: string }) {
  const read = useRead(ListSkillCategoriesResponseSchema, '/v1/skills:categories', { agent, parent: category });
  const below = read.data?.categories ?? [];
  if (below.length === 0 && category === '') return null;
  const above = category.split('.').slice(0, -1).join('.');
  return (
    <nav className="pager" aria-label="Categories">
      {category !== '' && <Link to={hrefWith({ category: above, page: '' })}>Leave {category}</Link>}
      {below.map((one) => (
        <Link key={one.category} to={hrefWith({ category: one.category, page: '' })}>
          {one.category} ({one.skillCount})
        </Link>
      ))}
    </nav>
  );
}

function Found({ text }: { readonly text: string }) {
  const { agent, tag } = useQueryValues('agent', 'tag');
  const body = { query: text, agent, tags: tag === '' ? [] : [tag], min_similarity: 0.2, max_results: 30 };
  const read = useRead(SearchSkillsResponseSchema, '/v1/skills:search', {}, { body });
  const similarity: Column<Skill> = {
    title: 'Similarity',
    number: true,
    cell: (skill) => (read.data?.hits.find((hit) => hit.skill === skill)?.similarity ?? 0).toFixed(2),
  };
  return (
    <ReadList
      label="found skills"
      read={read}
      of={({ hits }) => hits.flatMap(({ skill }) => (skill ? [skill] : []))}
      keyOf={placeOfSkill}
      columns={COLUMNS.toSpliced(1, 0, similarity)}
      empty={<p>No active skill matches these words. Try the words of the task, or clear the search to list all.</p>}
    />
  );
}

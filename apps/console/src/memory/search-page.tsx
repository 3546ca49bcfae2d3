import { type MemoryHit, SearchMemoryResponseSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import { useRead } from '../api/client.js';
import { Output } from '../ui/code.js';
import { ChoiceFilter, TextFilter } from '../ui/list.js';
import { Link, useQueryValue, useQueryValues } from '../ui/router.js';
import { Empty, Loaded } from '../ui/states.js';
import { Badge, firstLine, Scripted, When } from '../ui/text.js';
import { MemoryTabs, nodeOfSource, placeOfRecord, UserFilter } from './places.js';

const LAYERS = ['', 'episodic', 'semantic', 'procedural'].map((layer) => [layer, layer || 'all'] as const);

export function MemorySearchPage() {
  const [text] = useQueryValue('q');
  return (
    <>
      <MemoryTabs />
      <div className="filters">
        <TextFilter name="q" label="Search memory by meaning and by words" hint="what is the quay made of" isSearch />
        <ChoiceFilter name="layer" label="Layer" options={LAYERS} />
        <TextFilter name="agent" label="Agent" />
        <UserFilter />
      </div>
      {text === '' ? (
        <Empty>
          <p>Write what you look for. The search covers facts, episodes, documents, conversations and skills.</p>
        </Empty>
      ) : (
        <Hits text={text} />
      )}
    </>
  );
}

function Hits({ text }: { readonly text: string }) {
  const { layer, agent, user } = useQueryValues('layer', 'agent', 'user');
  const body = { query: text, layers: layer === '' ? [] : [layer], agent, user, limit: 10, explain: true, partial: true };
  const read = useRead(SearchMemoryResponseSchema, '/v1/memory:search', {}, { body });
  return (
    <Loaded read={read}>
      {({ hits, missingLayers }) => (
        <>
          {missingLayers.length > 0 && (
            <p className="note warn">Not searched, because their store does not answer: {missingLayers.join(', ')}</p>
          )}
          {hits.length === 0 && <Empty>Nothing in memory matches these words. Use fewer filters or other words.</Empty>}
          {hits
            .toSorted((a, b) => b.score - a.score)
            .map((hit) => (
              <Hit key={`${hit.kind} ${hit.id}`} hit={hit} />
            ))}
        </>
      )}
    </Loaded>
  );
}

function Hit({ hit }: { readonly hit: MemoryHit }) {
  const { id, layer, kind, title, text, score, similarity, agent, user, createTime, why, origins, untrustedOrigins } = hit;
  // The title of a fact is its category.
  const shown = kind === 'fact' ? firstLine(text) : title || id;
  return (
    <article className="hit">
      <h3>
        <Badge>{kind}</Badge> <Link to={placeOfRecord(layer, kind, id, agent)}>{shown}</Link> <Scripted when={hit.scripted} />{' '}
        {untrustedOrigins.length > 0 && <Badge tone="bad">not trusted</Badge>}
      </h3>
      {shown !== text && <Output text={text} label={shown} />}
      <p className="quiet">
        score {score.toFixed(2)} · similarity {similarity.toFixed(2)} · {[agent, user].filter(Boolean).join(' · ')} ·{' '}
        <When at={createTime} />
      </p>
      <details>
        <summary>Why this score</summary>
        {why.map((line) => (
          <p key={line}>{line}</p>
        ))}
        <p>
          Learned from:{' '}
          {origins.map((origin) => {
            const { to } = nodeOfSource(origin);
            return to === '' ? <Badge key={origin}>{origin}</Badge> : <Link key={origin} to={to}>{`${origin} `}</Link>;
          })}
        </p>
      </details>
    </article>
  );
}

import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { type MemoryHitSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import { skillResourceName } from '@etude/contracts/ids';
import type { RecalledItem, Skill } from '@etude/contracts/memory';
import type { MemoryHit } from '@etude/domain/ports/memory';

type HitInit = MessageInitShape<typeof MemoryHitSchema>;

export function hitMessage(hit: MemoryHit): HitInit {
  const { id, layer, kind, title, text, score, similarity, agent, createdAt, sources, explanation } = hit;
  return {
    id,
    layer,
    kind,
    title,
    text,
    score,
    similarity,
    agent,
    createTime: timestampFromMs(createdAt),
    sources: [...sources],
    explanation: { ...explanation },
  };
}

/** With what it comes from, where that is known. */
export function recalledMessage(item: RecalledItem & Partial<Pick<MemoryHit, 'agent' | 'createdAt' | 'sources'>>): HitInit {
  const { id, layer, kind, title, text, score, similarity, agent = '', createdAt, sources = [] } = item;
  const createTime = createdAt === undefined ? {} : { createTime: timestampFromMs(createdAt) };
  return { id, layer, kind, title, text, score, similarity, agent, ...createTime, sources: [...sources] };
}

interface SkillHit {
  readonly skill: Skill;
  readonly similarity: number;
  readonly score: number;
  readonly explanation?: Readonly<Record<string, number>>;
}

export function skillHitMessage({ skill, similarity, score, explanation }: SkillHit): HitInit {
  return {
    id: skillResourceName(skill.name),
    layer: 'procedural',
    kind: 'skill',
    title: `${skill.name}@${skill.version}`,
    text: skill.description,
    score,
    similarity,
    agent: skill.scope.agent,
    createTime: timestampFromMs(skill.createdAt),
    sources: skill.sources,
    explanation: { ...explanation },
  };
}

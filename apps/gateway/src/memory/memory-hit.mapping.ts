import type { MessageInitShape } from '@bufbuild/protobuf';
import { type MemoryHitSchema } from '@etude/contracts/gen/etude/v1/memory_pb';
import type { Skill } from '@etude/contracts/memory';
import type { MemoryHit } from '@etude/domain/ports/memory';
import { provenanceOf } from '@etude/domain/recall/provenance';
import { timestampAt } from '../wire/duration.js';

type HitInit = MessageInitShape<typeof MemoryHitSchema>;

export function hitMessage(hit: MemoryHit): HitInit {
  const { id, layer, kind, title, text, score, similarity, agent, user = '', scripted = false, createdAt, sources, explanation } = hit;
  return {
    id,
    layer,
    kind,
    title,
    text,
    score,
    similarity,
    agent,
    user,
    scripted,
    createTime: timestampAt(createdAt),
    sources: [...sources],
    explanation: { ...explanation },
    ...provenanceOf(hit),
  };
}

interface SkillHit {
  readonly skill: Skill;
  readonly similarity: number;
  readonly score: number;
  readonly explanation?: Readonly<Record<string, number>>;
}

export function skillHitMessage({ skill, similarity, score, explanation }: SkillHit): HitInit {
  const id = `${skill.name}@${skill.version}`;
  return {
    id,
    layer: 'procedural',
    kind: 'skill',
    title: id,
    text: skill.description,
    score,
    similarity,
    agent: skill.scope.agent,
    user: skill.scope.user ?? '',
    scripted: skill.scripted,
    createTime: timestampAt(skill.createdAt),
    sources: skill.sources,
    explanation: { ...explanation },
    ...provenanceOf({ id, kind: 'skill', sources: skill.sources }),
  };
}

import type { WantedSkill } from '@etude/contracts/skill-proof';
import type { SkillWish, SkillWishes, ToolReader } from '@etude/domain/tools/tool-ports';
import type { ToolCalls } from '@etude/queue/agents/tool-sessions';
import { ACTIVE_PRIORITY, IDLE_PRIORITY, type WantedSkills } from '@etude/queue/agents/wanted-skills';

export interface WishOrigin {
  /** Name of a reviewer's key: the words of such a wish are trusted. Absent: nobody vouches for them. */
  readonly vouchedBy?: string;
  /** Empty: none. */
  readonly requestId?: string;
}

/** Where everybody in the gateway asks for skills that are missing. @throws EtudeError QUEUE_UNAVAILABLE */
export class GatewaySkillWishes implements SkillWishes {
  constructor(
    private readonly wanted: WantedSkills,
    private readonly calls: Pick<ToolCalls, 'isActive'>,
  ) {}

  /** The same wish again is the first one. Answers its id. */
  async request(reader: ToolReader, wish: SkillWish): Promise<string> {
    return (await this.requestSkill(reader, wish)).id;
  }

  /** Of an agent that called within ten minutes before those of others. */
  async requestSkill({ tenant, agent, user }: ToolReader, wish: SkillWish, origin: WishOrigin = {}): Promise<WantedSkill> {
    const { name: skill, description } = wish;
    const priority = (await this.calls.isActive(tenant, agent)) ? ACTIVE_PRIORITY : IDLE_PRIORITY;
    const { vouchedBy, requestId = '' } = origin;
    const asked = { tenant, agent, user, skill, description, example: wish.example as WantedSkill['example'] };
    return this.wanted.request({ wish: vouchedBy === undefined ? asked : { ...asked, vouchedBy }, priority, requestId });
  }
}

import { Skills } from '@etude/contracts/gen/etude/v1/skills_pb';
import { Tools } from '@etude/contracts/gen/etude/v1/tools_pb';
import { type ClientSettings, createServiceClient, type ServiceClient } from '@etude/contracts/grpc-client';

/** The calls of the gateway that this server is made of. */
export interface GatewayCalls {
  readonly tools: Pick<ServiceClient<typeof Tools>, 'listTools' | 'callTool'>;
  readonly skills: Pick<ServiceClient<typeof Skills>, 'listSkills' | 'listSkillVersions' | 'exportSkill'>;
}

/** @param address "host:port" of the gateway's gRPC server */
export function openGatewayCalls(address: string, settings: ClientSettings = {}): GatewayCalls & { close(): void } {
  const tools = createServiceClient(Tools, address, settings);
  const skills = createServiceClient(Skills, address, settings);
  return {
    tools,
    skills,
    close: () => {
      tools.close();
      skills.close();
    },
  };
}

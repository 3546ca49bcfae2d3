import { toJson } from '@bufbuild/protobuf';
import { type SandboxFile, SandboxFileSchema } from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { type Cli, withGateway } from '../cli.js';
import { EXIT } from '../exit-codes.js';
import { callSettings } from './manage-sandboxes.js';
import { fileTable } from './sandbox-lines.js';
import { sandboxResource } from './sandbox-request.js';

export function listFiles(cli: Cli, sandbox: string): Promise<number> {
  const name = sandboxResource(sandbox);
  return withGateway(cli, async (gateway) => {
    const files: SandboxFile[] = [];
    let pageToken = '';
    do {
      const page = await gateway.sandboxes.listSandboxFiles({ name, pageToken }, callSettings(cli));
      files.push(...page.files);
      pageToken = page.nextPageToken;
    } while (pageToken);
    cli.out.data({ files: files.map((file) => toJson(SandboxFileSchema, file)) }, files.length > 0 ? fileTable(files) : '');
    if (files.length === 0) cli.out.note('no files');
    return EXIT.ok;
  });
}

export function removeFile(cli: Cli, sandbox: string, path: string): Promise<number> {
  return withGateway(cli, async (gateway) => {
    await gateway.sandboxes.deleteSandboxFile({ name: sandboxResource(sandbox), path }, callSettings(cli));
    cli.out.data({ path }, `removed ${path}`);
    return EXIT.ok;
  });
}

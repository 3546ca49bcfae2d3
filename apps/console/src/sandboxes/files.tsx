import {
  DeleteSandboxFileResponseSchema,
  ListSandboxFilesResponseSchema,
  type SandboxFile,
  SandboxFileSchema,
} from '@etude/contracts/gen/etude/v1/sandboxes_pb';
import { useAct, useRead } from '../api/hooks.js';
import { List } from '../ui/list.js';
import { Failed, Loaded } from '../ui/states.js';
import { When } from '../ui/text.js';

function save(bytes: Blob, path: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(bytes);
  link.download = path.split('/').at(-1)!;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1_000);
}

/** The files of a sandbox: up, down, and away. */
export function Files({ sandbox }: { readonly sandbox: string }) {
  const path = `/v1/sandboxes/${sandbox}/files`;
  const read = useRead(ListSandboxFilesResponseSchema, path, {}, { everyMs: 10_000 });
  const upload = useAct((api, file: File) =>
    api.call(SandboxFileSchema, 'POST', `${path}:upload`, { query: { path: file.name, size_bytes: file.size }, bytes: file }),
  );
  const download = useAct(async (api, file: SandboxFile) =>
    save(await (await api.send('GET', `${path}:download`, { query: { path: file.path } })).blob(), file.path),
  );
  const remove = useAct((api, file: SandboxFile) =>
    api.call(DeleteSandboxFileResponseSchema, 'DELETE', path, { query: { path: file.path } }),
  );
  const error = upload.error ?? download.error ?? remove.error;
  return (
    <section aria-label="Files">
      <h2>Files</h2>
      <label className="field">
        <span>Upload a file</span>
        <input type="file" onChange={({ target }) => target.files?.[0] && upload.mutate(target.files[0])} />
      </label>
      {error && <Failed error={error} />}
      <Loaded read={read}>
        {({ files }) => (
          <List
            label="files"
            items={files}
            keyOf={(file) => file.path}
            columns={[
              {
                title: 'Download',
                cell: (file) => (
                  <button type="button" onClick={() => download.mutate(file)}>
                    {file.path}
                  </button>
                ),
              },
              { title: 'Bytes', number: true, cell: ({ sizeBytes }) => sizeBytes.toLocaleString('en') },
              { title: 'Changed', cell: ({ modifyTime }) => <When at={modifyTime} /> },
              {
                title: 'Delete',
                cell: (file) => (
                  <button type="button" className="danger" onClick={() => remove.mutate(file)}>
                    Delete {file.path}
                  </button>
                ),
              },
            ]}
            empty={<p>The working directory has no files. Code and uploads make them.</p>}
          />
        )}
      </Loaded>
    </section>
  );
}

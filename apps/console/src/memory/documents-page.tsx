import {
  DeleteDocumentResponseSchema,
  type Document,
  ImportDocumentResponseSchema,
  ListDocumentsResponseSchema,
} from '@etude/contracts/gen/etude/v1/memory_pb';
import { requestId, useAct, useRead } from '../api/client.js';
import { ActButton } from '../ui/button.js';
import { ReadList, TextFilter } from '../ui/list.js';
import { Link, useQueryValues } from '../ui/router.js';
import { Failed } from '../ui/states.js';
import { When } from '../ui/text.js';
import { MemoryTabs, UserFilter } from './places.js';

export function DocumentsPage() {
  const { agent, user, page } = useQueryValues('agent', 'user', 'page');
  const read = useRead(ListDocumentsResponseSchema, '/v1/memory/documents', { agent, user, page_size: 50, page_token: page });
  const add = useAct((api, file: File) =>
    api.call(ImportDocumentResponseSchema, 'POST', '/v1/memory/documents', { query: { name: file.name, agent, user }, bytes: file }),
  );
  const remove = useAct((api, { id }: Document) =>
    api.call(DeleteDocumentResponseSchema, 'DELETE', `/v1/memory/documents/${encodeURIComponent(id)}`, {
      query: { request_id: requestId() },
    }),
  );
  const error = add.error ?? remove.error;
  return (
    <>
      <MemoryTabs />
      <div className="filters">
        <TextFilter name="agent" label="Agent" isSearch />
        <UserFilter />
        <label className="field">
          <span>Import a document for this agent and user</span>
          <input type="file" accept=".md,.txt,.html,.pdf" onChange={({ target }) => target.files?.[0] && add.mutate(target.files[0])} />
        </label>
      </div>
      <div aria-live="polite">
        {add.data && (
          <p className="note">
            {`${add.data.document?.name}: ${add.data.outcome}, ${add.data.document?.chunks} passages`}
            {add.data.maskedSecrets > 0 && `, ${add.data.maskedSecrets} secrets masked`}
          </p>
        )}
      </div>
      {error && <Failed error={error} />}
      <ReadList
        label="documents"
        read={read}
        of={({ documents }) => documents}
        keyOf={({ id }) => id}
        columns={[
          { title: 'Document', cell: ({ id, title, name }) => <Link to={`/memory/records/semantic:${id}`}>{title || name}</Link> },
          { title: 'Name', cell: ({ name }) => name },
          { title: 'Type', cell: ({ mediaType }) => mediaType },
          { title: 'Bytes', number: true, cell: ({ bytes }) => bytes.toLocaleString('en') },
          { title: 'Passages', number: true, cell: ({ chunks }) => chunks },
          { title: 'Agent', cell: (document) => document.agent },
          { title: 'Imported', cell: ({ createTime }) => <When at={createTime} /> },
          { title: 'Erase', cell: (document) => <ActButton act={remove} input={document} text={`Erase ${document.name}`} tone="danger" /> },
        ]}
        empty={<p>There is no document yet. Choose a file above: Markdown, text, HTML or PDF.</p>}
      />
    </>
  );
}

import { Tabs } from '@base-ui/react/tabs';
import type { ReactNode } from 'react';
import { useQueryValue } from './router.js';

interface TabOf {
  readonly id: string;
  readonly title: ReactNode;
  readonly content: ReactNode;
}

interface TabsProps {
  readonly label: string;
  readonly tabs: readonly TabOf[];
  readonly name?: string;
}

export function LinkedTabs({ label, tabs, name = 'tab' }: TabsProps) {
  const [chosen, choose] = useQueryValue(name);
  const value = tabs.some(({ id }) => id === chosen) ? chosen : tabs[0]!.id;
  return (
    <Tabs.Root value={value} onValueChange={(next: string) => choose(next)}>
      <Tabs.List className="tabs" aria-label={label} activateOnFocus>
        {tabs.map(({ id, title }) => (
          <Tabs.Tab key={id} value={id}>
            {title}
          </Tabs.Tab>
        ))}
      </Tabs.List>
      {tabs.map(({ id, content }) => (
        <Tabs.Panel key={id} value={id} className="panel">
          {content}
        </Tabs.Panel>
      ))}
    </Tabs.Root>
  );
}

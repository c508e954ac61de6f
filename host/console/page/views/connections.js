// What hako is connected to: upstream servers, Slack, credentials and its replicas.
import { h, put } from '../dom.js'
import { digest, t, time } from '../language.js'
import { badge, card, code, head, since, when } from '../parts.js'
import { table } from '../table.js'

export default function connections(page) {
  const upstreams = table({
    caption: t('connections.upstreams'), rowKey: row => row.name, empty: t('connections.noUpstreams'),
    columns: [
      { label: t('column.server'), cell: row => [h('strong', {}, row.name), h('small', {}, [row.server, row.version].filter(Boolean).join(' '))] },
      { label: t('column.state'), cell: row => badge('state', row.state) },
      { label: t('column.transport'), class: 'wide', cell: row => `${row.transport} ${row.protocol ?? ''}` },
      { label: t('column.tools'), class: 'number', cell: row => row.tools ?? 0 },
      { label: t('column.since'), class: 'wide nowrap', cell: row => when(row.since) },
      { label: t('column.reason'), class: 'grow', cell: upstreamNotes },
    ],
  })
  const slack = table({
    caption: 'Slack', rowKey: row => row.name, empty: '–',
    columns: [
      { label: t('column.workspace'), cell: row => h('strong', {}, row.name) },
      { label: t('column.state'), cell: row => badge('state', row.state) },
      { label: t('column.transport'), class: 'wide', cell: row => row.socketMode ? 'Socket Mode' : 'HTTP' },
      { label: t('column.since'), class: 'wide nowrap', cell: row => row.since ? when(row.since) : '–' },
      { label: t('column.reason'), class: 'grow', cell: row => row.error ?? '' },
    ],
  })
  const workspaces = card('Slack', slack.element)
  const credentials = table({
    caption: t('connections.credentials'), rowKey: row => `${row.name}/${row.tenant ?? ''}`, empty: t('connections.noCredentials'),
    columns: [
      { label: t('column.credential'), cell: row => [h('strong', {}, row.name), h('small', {}, row.tenant ?? '')] },
      { label: t('column.state'), cell: row => badge('state', row.state) },
      { label: t('column.provider'), class: 'wide', cell: row => row.provider || t('connections.token') },
      { label: t('column.expires'), class: 'wide nowrap', cell: row => row.expires ? when(row.expires) : '–' },
      { label: t('column.reason'), class: 'grow', cell: row => row.remedy ? row.remedy : Object.entries(row.facts ?? {}).map(([key, value]) => `${key}: ${value} `) },
    ],
  })
  const replicas = table({
    caption: t('overview.replicas'), rowKey: row => row.id, empty: t('replicas.empty'),
    columns: [
      { label: t('column.replica'), cell: row => [code(digest(row.id)), ' ', row.self && h('span', { class: 'badge plain' }, t('replicas.self'))] },
      { label: t('column.host'), cell: row => row.host },
      { label: t('column.version'), cell: row => row.version },
      { label: t('column.started'), class: 'wide nowrap', cell: row => when(row.started) },
      { label: t('column.seen'), class: 'wide nowrap', cell: row => since(row.seen) },
    ],
  })
  put(page.root, head(t('nav.connections')),
    card(t('connections.upstreams'), upstreams.element), workspaces, card(t('connections.credentials'), credentials.element), card(t('overview.replicas'), replicas.element))
  page.poll(10_000, async () => {
    const [servers, chats, secrets, machines] = await Promise.all([page.get('upstreams'), page.get('slack'), page.get('credentials'), page.get('replicas')])
    upstreams.update(servers.items)
    workspaces.hidden = chats.items.length === 0
    slack.update(chats.items)
    credentials.update(secrets.items)
    replicas.update(machines.items)
  })
}

function upstreamNotes(row) {
  return [
    row.error && h('span', {}, row.error),
    row.error && row.retry && h('small', {}, t('connections.retry', { at: time(row.retry) })),
    row.omitted?.length > 0 && h('small', {}, t('connections.omitted', { n: row.omitted.length }), ' ', row.omitted.join('; ')),
  ]
}

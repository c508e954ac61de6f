// What hako is connected to: upstream servers, Slack, credentials and its replicas.
import { h, put } from '../dom.js'
import { t, time } from '../language.js'
import { badge, card, head, when } from '../parts.js'
import { replicaTable } from '../replicas.js'
import { table } from '../table.js'

export default function connections(page) {
  const upstreams = table({
    caption: t('connections.upstreams'), rowKey: row => row.name, empty: '–',
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
  const credentials = table({
    caption: t('connections.credentials'), rowKey: row => `${row.name}/${row.tenant ?? ''}`, empty: '–',
    columns: [
      { label: t('column.credential'), cell: row => [h('strong', {}, row.name), h('small', {}, row.tenant ?? '')] },
      { label: t('column.state'), cell: row => badge('state', row.state) },
      { label: t('column.provider'), class: 'wide', cell: row => row.provider || t('connections.token') },
      { label: t('column.expires'), class: 'wide nowrap', cell: row => row.expires ? when(row.expires) : '–' },
      { label: t('column.reason'), class: 'grow', cell: row => row.remedy ? row.remedy : Object.entries(row.facts ?? {}).map(([key, value]) => `${key}: ${value} `) },
    ],
  })
  const replicas = replicaTable()
  const parts = [
    ['upstreams', card(t('connections.upstreams'), upstreams.element), upstreams, t('connections.noUpstreams')],
    ['slack', card('Slack', slack.element), slack, t('connections.noSlack')],
    ['credentials', card(t('connections.credentials'), credentials.element), credentials, t('connections.noCredentials')],
    ['replicas', card(t('overview.replicas'), replicas.element), replicas, t('replicas.empty')],
  ]
  const absent = h('ul', { class: 'lines hint' })
  put(page.root, head(t('nav.connections')), parts.map(([, part]) => part), absent)
  page.poll(10_000, async () => {
    const answers = await Promise.all(parts.map(([path]) => page.get(path)))
    parts.forEach(([, part, list], i) => {
      part.hidden = answers[i].items.length === 0
      list.update(answers[i].items)
    })
    put(absent, parts.filter((_, i) => answers[i].items.length === 0).map(([, , , text]) => h('li', {}, text)))
  })
}

function upstreamNotes(row) {
  return [
    row.error && h('span', {}, row.error),
    row.error && row.retry && h('small', {}, t('connections.retry', { at: time(row.retry) })),
    row.omitted?.length > 0 && h('small', {}, t('connections.omitted', { n: row.omitted.length }), ' ', row.omitted.join('; ')),
  ]
}

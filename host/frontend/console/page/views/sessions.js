// Who uses hako now: connected MCP clients, and the people who are signed in here.
import { decide } from '../dialog.js'
import { h, put } from '../dom.js'
import { filters, has } from '../filters.js'
import { number, t, term, who } from '../language.js'
import { card, code, facts, head, may, since, when } from '../parts.js'
import { post, segment } from '../server.js'
import { buttonColumn, table } from '../table.js'

export default function sessions(page) {
  const admin = may(page.session, 'admin')
  const note = h('p', { class: 'hint' }, t('sessions.about'))
  let connected = { items: [] }
  const narrow = filters(page, () => show())
  const text = narrow.search(t('sessions.filter'))
  const clients = clientTable(page, narrow, admin && (row => end(row, again)))
  const show = () => clients.update(connected.items.filter(row => has(text.value, row.client, row.version, row.user, row.tenant, row.token, row.address, row.protocol)))
  const people = peopleTable()
  put(page.root, head(t('nav.sessions')), card(t('sessions.clients'), note, h('div', { class: 'tools' }, text), clients.element), admin && card(t('sessions.people'), people.element))
  const again = page.poll(10_000, async () => {
    const [answer, signedIn] = await Promise.all([page.get('clients'), admin ? page.get('sessions') : { items: [] }])
    connected = answer
    put(note, t('sessions.about'), connected.replica && ` ${t('sessions.replica', { replica: connected.replica })}`)
    show()
    people.update(signedIn.items)
  })
}

/** clientTable lists MCP clients; end ends a session, or is missing without the role. */
function clientTable(page, narrow, end) {
  return table({
    caption: t('sessions.clients'), rowKey: row => `${row.id}/${row.since}`, page, narrow,
    empty: [h('p', {}, t('sessions.noClients')), h('p', {}, code('hako mcp-config claude-code'))],
    columns: [
      { label: t('column.client'), by: 'client', cell: row => [h('strong', {}, row.client || t('sessions.unnamed')), ' ', row.version,
        h('small', {}, term('frontend', row.frontend), ' ', row.protocol), (row.user || row.token) && h('small', { class: 'narrow' }, who(row))] },
      { label: t('column.who'), by: 'who', value: row => row.user || row.token, class: 'wide', cell: row => [row.user || row.token ? who(row) : '–', h('small', {}, row.address)] },
      { label: t('column.since'), by: 'since', down: true, class: 'wide nowrap', cell: row => row.since ? when(row.since) : '–' },
      { label: t('column.used'), by: 'used', down: true, class: 'nowrap', cell: row => row.used ? since(row.used) : '–' },
      { label: t('column.calls'), by: 'calls', value: row => row.here ? row.calls : null, down: true, class: 'number wide', cell: row => figure(row, row.calls) },
      { label: t('column.running'), by: 'running', value: row => row.here ? row.requests : null, down: true, class: 'number wide', cell: row => figure(row, row.requests) },
      { label: t('column.streams'), by: 'streams', value: row => row.here ? row.streams : null, down: true, class: 'number wide', cell: row => figure(row, row.streams) },
      end && buttonColumn(t('sessions.end'), end, row => row.id),
    ].filter(Boolean),
  })
}

/** figure shows a number of this replica, which has none for sessions that only other replicas have served. */
function figure(row, n) {
  return row.here ? number(n) : '–'
}

function end(row, again) {
  decide({
    title: t('sessions.endTitle'), label: t('sessions.end'), danger: true,
    body: [h('p', {}, t('sessions.endAbout')), facts([
      [t('column.client'), `${row.client || t('sessions.unnamed')} ${row.version}`], [t('column.who'), who(row)], [t('column.address'), row.address && code(row.address)],
      [t('column.since'), row.since && when(row.since)], [t('column.running'), row.requests && number(row.requests)],
    ])],
    async act() {
      await post(`clients/${segment(row.id)}/end`)
      again()
    },
  })
}

function peopleTable() {
  return table({
    caption: t('sessions.people'), rowKey: row => `${row.user}/${row.created}/${row.address}`, empty: '–',
    columns: [
      { label: t('column.who'), cell: row => [row.user, ' ', row.self && h('span', { class: 'badge plain' }, t('sessions.you'))] },
      { label: t('column.role'), cell: row => term('role', row.role) },
      { label: t('column.via'), class: 'wide', cell: row => term('via', row.via) },
      { label: t('column.address'), class: 'wide', cell: row => code(row.address ?? '') },
      { label: t('column.seen'), class: 'nowrap', cell: row => since(row.seen) },
    ],
  })
}

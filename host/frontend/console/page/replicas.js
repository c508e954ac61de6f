// The hako processes over one store, as the view of connections and the overview show them.
import { h } from './dom.js'
import { digest, t } from './language.js'
import { badge, code, when } from './parts.js'
import { table } from './table.js'

/** replicaTable lists the replicas that live, and those that ended within the last hour without saying so. */
export function replicaTable() {
  return table({
    caption: t('overview.replicas'), rowKey: row => row.id, empty: '–',
    columns: [
      { label: t('column.replica'), cell: row => [h('strong', {}, row.host), ' ', row.self && h('span', { class: 'badge plain' }, t('replicas.self')), h('small', {}, code(digest(row.id)))] },
      { label: t('column.version'), class: 'wide', cell: row => row.version },
      { label: t('column.started'), class: 'wide', cell: row => when(row.started) },
      { label: t('column.state'), cell: row => [badge('state', row.lost ? 'down' : 'up'), row.lost && h('small', {}, t('replicas.seen'), ' ', when(row.seen))] },
    ],
  })
}

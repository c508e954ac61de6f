// Tests over the fake: each has a host with answers of its own, and a page of it. Whoever imports this has a browser, as long as its tests run.
import { after, before, test } from 'node:test'

import { answers, session } from './answers.mjs'
import { clean, shoot, startChromium } from './chromium.mjs'
import { startFake } from './fake.mjs'

export let chromium
before(async () => { chromium = await startChromium() })
after(() => chromium?.close())

/** opened runs work on a page of a host with other answers, and cleans up. If it fails, the page as it then was is in dist/browser. */
export function opened(name, { hash = '', who = session(), more = {}, ...options }, work) {
  test(name, async () => {
    const host = await startFake({ ...answers(who), ...more })
    let page
    try {
      page = await chromium.open(host.url + hash, options)
      await page.locator('main h1').waitFor()
      await work(page, host)
      await clean(page)
    } catch (error) {
      if (page && !page.isClosed()) await shoot(page, `failed-${name.replace(/\W+/g, '-').slice(0, 80)}`).catch(() => {})
      throw error
    } finally {
      await host.stop()
    }
  })
}

import random
import time

import wit_world

calls = 0


class WitWorld(wit_world.WitWorld):
    def echo(self, text: str) -> str:
        return text

    def count(self) -> int:
        global calls
        calls += 1
        return calls

    def crash(self) -> None:
        raise ValueError("crashed as asked")

    def dice(self) -> float:
        return random.random()

    def now(self) -> float:
        return time.time() * 1000

"""Programs with one mistake each, and below it what mypy, pyright and ebbflow say of it.

Each says it of the line above the comments. Who has no comment there says nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import ebbflow as ef


class Address(NamedTuple):
    street: str
    city: str


class Order(NamedTuple):
    id: int
    city: str
    price: int
    to: Address
    tags: tuple[str, ...] = ()


class Person(NamedTuple):
    id: int
    name: str


orders = ef.Input("orders", Order, key="id")
people = ef.Input("people", Person)
words = ef.Input("words", str)


# ---- fields of rows ----


def of_a_filter() -> None:
    orders.filter(lambda order: order.prcie > 3)
    # by mypy: "Order" has no attribute "prcie"
    # by pyright: Cannot access attribute "prcie" for class "Order"
    # by ebbflow: filter(<lambda>): rows of "orders" have no field 'prcie'
    # remedy: order.price


def of_a_map() -> None:
    orders.map(lambda order: order.ctiy)
    # by mypy: "Order" has no attribute "ctiy"
    # by pyright: Cannot access attribute "ctiy" for class "Order"
    # by ebbflow: map(<lambda>): rows of "orders" have no field 'ctiy'
    # remedy: order.city


def of_a_map_with_a_type() -> None:
    orders.map(lambda order: order.ctiy, type=str)
    # by mypy: "Order" has no attribute "ctiy"
    # by pyright: Cannot access attribute "ctiy" for class "Order"
    # by ebbflow: map(<lambda>): rows of "orders" have no field 'ctiy'
    # remedy: order.city


def of_a_field_of_a_field() -> None:
    orders.filter(lambda order: order.to.ctiy == "Rome")
    # by mypy: "Address" has no attribute "ctiy"
    # by pyright: Cannot access attribute "ctiy" for class "Address"
    # by ebbflow: filter(<lambda>): values of order.to have no field 'ctiy'
    # remedy: order.to.city


def of_a_row_that_is_a_text() -> None:
    words.map(lambda word: word.uper())
    # by mypy: "str" has no attribute "uper"
    # by pyright: Cannot access attribute "uper" for class "str"
    # by ebbflow: map(<lambda>): rows of "words" have no field 'uper'
    # remedy: word.upper


def of_a_method_of_a_field() -> None:
    orders.filter(lambda order: order.city.startswit("R"))
    # by mypy: "str" has no attribute "startswit"
    # by pyright: Cannot access attribute "startswit" for class "str"


def of_a_flat_map() -> None:
    orders.flat_map(lambda order: order.tgas)
    # by mypy: "Order" has no attribute "tgas"
    # by pyright: Cannot access attribute "tgas" for class "Order"
    # by ebbflow: flat_map(<lambda>): rows of "orders" have no field 'tgas'
    # remedy: order.tags


def of_a_key() -> None:
    orders.group_by(lambda order: order.ctiy)
    # by mypy: "Order" has no attribute "ctiy"
    # by pyright: Cannot access attribute "ctiy" for class "Order"
    # by ebbflow: group_by(<lambda>): rows of "orders" have no field 'ctiy'
    # remedy: order.city


def of_the_key_of_an_input() -> None:
    ef.Input("orders", Order, key=lambda order: order.idd)
    # by mypy: "Order" has no attribute "idd"
    # by pyright: Cannot access attribute "idd" for class "Order"
    # by ebbflow: Input('orders', key=<lambda>): rows of "orders" have no field 'idd'
    # remedy: order.id


def of_the_key_of_a_join() -> None:
    orders.join(people, left_on=lambda order: order.idd, right_on=lambda person: person.id)
    # by mypy: "Order" has no attribute "idd"
    # by pyright: Cannot access attribute "idd" for class "Order"
    # by ebbflow: join(left_on=<lambda>): rows of "orders" have no field 'idd'
    # remedy: order.id


def of_the_other_key_of_a_join() -> None:
    orders.join(people, left_on=lambda order: order.id, right_on=lambda person: person.idd)
    # by mypy: "Person" has no attribute "idd"
    # by pyright: Cannot access attribute "idd" for class "Person"
    # by ebbflow: join(right_on=<lambda>): rows of "people" have no field 'idd'
    # remedy: person.id


def of_a_merged_row() -> None:
    orders.join(people, on="id", select=lambda order, person: (order.id, person.nmae))
    # by mypy: "Person" has no attribute "nmae"
    # by pyright: Cannot access attribute "nmae" for class "Person"
    # by ebbflow: join(select=<lambda>): rows of "people" have no field 'nmae'
    # remedy: person.name


def of_one_row_of_another() -> None:
    orders.filter(lambda order, person: order.price > person.ide, people)
    # by mypy: "Person" has no attribute "ide"
    # by pyright: Cannot access attribute "ide" for class "Person"
    # by ebbflow: filter(<lambda>, other): rows of "people" have no field 'ide'
    # remedy: person.id


def of_a_reducer() -> None:
    orders.group_by("city").agg(total=ef.sum(lambda order: order.prcie))
    # by mypy: "Order" has no attribute "prcie"
    # by pyright: Cannot access attribute "prcie" for class "Order"
    # by ebbflow: agg(total=sum(<lambda>)): rows of "orders" have no field 'prcie'
    # remedy: order.price


def of_a_condition_of_a_reducer() -> None:
    orders.agg(n=ef.count().where(lambda order: order.prcie > 3))
    # by mypy: "Order" has no attribute "prcie"
    # by pyright: Cannot access attribute "prcie" for class "Order"
    # by ebbflow: agg(n=count().where(<lambda>)): rows of "orders" have no field 'prcie'
    # remedy: order.price


def of_a_reducer_of_your_own() -> None:
    orders.agg(total=ef.Reducer(0, lambda total, order: total + order.prcie))
    # by mypy: "Order" has no attribute "prcie"
    # by pyright: Cannot access attribute "prcie" for class "Order"
    # by ebbflow: agg(total=Reducer(<lambda>)): rows of "orders" have no field 'prcie'
    # remedy: order.price


def of_the_best() -> None:
    orders.top_k(3, order=lambda order: order.prcie)
    # by mypy: "Order" has no attribute "prcie"
    # by pyright: Cannot access attribute "prcie" for class "Order"
    # by ebbflow: top_k(order=<lambda>): rows of "orders" have no field 'prcie'
    # remedy: order.price


def of_an_order() -> None:
    orders.over(order=lambda order: order.idd)
    # by mypy: "Order" has no attribute "idd"
    # by pyright: Cannot access attribute "idd" for class "Order"
    # by ebbflow: over(order=<lambda>): rows of "orders" have no field 'idd'
    # remedy: order.id


def of_a_frame() -> None:
    orders.over(order="id").with_fields(total=ef.sum(lambda order: order.prcie))
    # by mypy: "Order" has no attribute "prcie"
    # by pyright: Cannot access attribute "prcie" for class "Order"
    # by ebbflow: with_fields(total=sum(<lambda>)): rows of "orders" have no field 'prcie'
    # remedy: order.price


def of_a_window_function() -> None:
    orders.over(order="id").with_fields(before=ef.window.lag(lambda order: order.prcie))
    # by ebbflow: with_fields(before=<lambda>): rows of "orders" have no field 'prcie'
    # remedy: order.price


def of_a_step() -> None:
    orders.scan(lambda last, order: (order.prcie, [last]), 0, order="id")
    # by mypy: "Order" has no attribute "prcie"
    # by pyright: Cannot access attribute "prcie" for class "Order"
    # by ebbflow: scan(<lambda>): rows of "orders" have no field 'prcie'
    # remedy: order.price


def of_the_state_of_a_fold() -> None:
    orders.fold(lambda last, order: (order.prcie, []), 0, order="id", per="city")
    # by mypy: "Order" has no attribute "prcie"
    # by pyright: Cannot access attribute "prcie" for class "Order"
    # by ebbflow: fold(<lambda>): rows of "orders" have no field 'prcie'
    # remedy: order.price


def of_a_pattern() -> None:
    orders.match(dear=lambda order: order.prcie > 9, order="id")
    # by mypy: "Order" has no attribute "prcie"
    # by pyright: Cannot access attribute "prcie" for class "Order"
    # by ebbflow: match(dear=<lambda>): rows of "orders" have no field 'prcie'
    # remedy: order.price


def by_its_name() -> None:
    orders.group_by("ctiy")
    # by ebbflow: group_by("ctiy"): rows of "orders" have no field 'ctiy'
    # remedy: group_by("city")


# ---- what rows and results can do ----


def rows_of_another_type() -> None:
    def loud(word: str) -> str:
        return word.upper()

    orders.map(loud)
    # by mypy: Argument 1 to "map" of "RowVerbs" has incompatible type "Callable[[str], str]"
    # by pyright: Argument of type "(word: str) -> str" cannot be assigned to parameter "f"
    # by ebbflow: map(loud): rows of "orders" have no field 'upper'
    # remedy: one of its fields


def a_result_that_is_no_row() -> None:
    orders.map(lambda order: [order.city])
    # by mypy: Value of type variable "U" of "map" of "RowVerbs" cannot be "list[str]"
    # by pyright: Type "list[str]" is not assignable to type "Hashable"


def rows_of_a_view() -> None:
    for order in orders.filter(lambda order: order.price > 3).run().value:
        print(order.prcie)
        # by mypy: "Order" has no attribute "prcie"
        # by pyright: Cannot access attribute "prcie" for class "Order"


def an_option_of_run_that_is_misspelt() -> None:
    orders.run(flush_evry=2)
    # by mypy: No overload variant of "run" of "Collection" matches argument type "int"
    # by pyright: No overloads for "run" match the provided arguments
    # by ebbflow: run(flush_evry=...): there is no such option
    # remedy: did you mean flush_every?


def groups_by_the_name_that_others_give_them() -> None:
    orders.sample(0.1, by="city")
    # by mypy: Unexpected keyword argument "by" for "sample" of "ReshapeVerbs"
    # by pyright: No parameter named "by"
    # by ebbflow: sample() has no argument 'by'
    # remedy: per='city'


def a_verb_of_another_library() -> None:
    orders.groupby("city")
    # by mypy: "Input[Order]" has no attribute "groupby"
    # by pyright: Cannot access attribute "groupby" for class "Input[Order]"
    # by ebbflow: a collection has no 'groupby'
    # remedy: group_by("field")


def groups_that_are_not_reduced() -> None:
    orders.group_by("city").run()
    # by mypy: "Grouped[Order]" has no attribute "run"
    # by pyright: Cannot access attribute "run" for class "Grouped[Order]"
    # by ebbflow: .run is for collections, and group_by(...) alone is none
    # remedy: group_by(...).reduce


def a_reducer_that_is_not_called() -> None:
    orders.agg(n=ef.count)
    # by mypy: Argument "n" to "agg" of "GroupVerbs" has incompatible type
    # by pyright: cannot be assigned to parameter "n" of type "Reducer[Order, Any, Any]"
    # by ebbflow: agg(n=...): count is not a reducer
    # remedy: ebbflow.count()


def a_sum_of_texts() -> None:
    orders.group_by("city").agg(total=ef.sum("city"))
    # by ebbflow: agg(total=sum('city')): 'city' is of type str, and no numbers
    # remedy: ebbflow.sum("price")


def a_mean_of_texts() -> None:
    orders.agg(mean=ef.mean(lambda order: order.city.upper()))
    # by ebbflow: agg(mean=mean(<lambda>)): its values are of type str, and no numbers

"""The user's SQL expressions: analysed at once, so that what is wrong with one is said where it is written."""

from __future__ import annotations

import logging

from py4j.protocol import Py4JJavaError
from pyspark.errors import ParseException, PySparkException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from contracts.errors import ConfigError
from pipelines.engine.embedded import is_embedded
from pipelines.engine.failures import explain, first_line, is_syntax


def with_expression(frame: DataFrame, name: str, expression: str, where: str) -> tuple[DataFrame, str]:
    """(the frame with the column `name`, the column's type). `where` names the setting.

    Raises ConfigError when the expression is no SQL, or when the engine would answer otherwise than Apache Spark does,
    with the cure; SchemaError on an unknown column; DataError on what else an engine finds wrong with it. Logs a notice
    on a function of which no engine's conformance is known.
    """
    from pipelines.sql.checked import checked  # the parser of SQL is large, and most logs have no expression

    found = checked(
        expression, "embedded" if is_embedded(frame.sparkSession) else "spark", where, dict(frame.dtypes))
    for notice in found.notices:
        logging.getLogger(__name__).warning(notice)
    try:
        made = frame.withColumn(name, F.expr(found.expression))
        return made, made.schema[name].dataType.simpleString()
    except (PySparkException, Py4JJavaError) as error:
        if isinstance(error, ParseException) or is_syntax(str(error)):
            raise ConfigError(f"{where} {expression!r} is no SQL expression: {first_line(str(error))[:200]}") from None
        raise explain(error, where, expression) from error
